// Reading .safetensors files: a JSON header, then the numbers; half precision becomes float32.

let table = null;

/** Arrays by name as Float32Arrays with a `shape`, and the metadata of the file. */
export function readTensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const { __metadata__: metadata = {}, ...entries } = header;
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(entries)) {
    const bytes = buffer.slice(8 + length + from, 8 + length + to);
    tensors[name] = dtype === "F16" ? halves(new Uint16Array(bytes)) : dtype === "I32" ? new Int32Array(bytes) : new Float32Array(bytes);
    tensors[name].shape = shape;
  }
  return { tensors, metadata };
}

function halves(bits) {
  table ??= Float32Array.from({ length: 65536 }, (_, b) => {
    const sign = b & 0x8000 ? -1 : 1, exponent = (b >> 10) & 31, fraction = b & 1023;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
  });
  const out = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) out[i] = table[bits[i]];
  return out;
}
