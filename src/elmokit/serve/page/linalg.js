// The little algebra that the views need. Arrays are flat Float32Arrays, row by row.

/** Shares of the layers: softmax of the scalars s_j. */
export function softmax(scalars) {
  const largest = Math.max(...scalars);
  const powers = scalars.map((s) => Math.exp(s - largest));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / total);
}

/** γ · Σ_j share_j · layer_j of arrays (L, rows · dim). */
export function mixLayers(layers, count, shares, gamma = 1) {
  const size = layers.length / count;
  const out = new Float32Array(size);
  for (let j = 0; j < count; j++) {
    const share = gamma * shares[j];
    const start = j * size;
    for (let i = 0; i < size; i++) out[i] += share * layers[start + i];
  }
  return out;
}

/** Length of each row. */
export function lengths(rows, dim) {
  const out = new Float32Array(rows.length / dim);
  for (let r = 0; r < out.length; r++) {
    let sum = 0;
    for (let d = 0; d < dim; d++) sum += rows[r * dim + d] ** 2;
    out[r] = Math.sqrt(sum);
  }
  return out;
}

/** Rows scaled to length 1; zero rows stay zero. */
export function unitRows(rows, dim) {
  const out = new Float32Array(rows.length);
  lengths(rows, dim).forEach((length, r) => {
    const scale = 1 / Math.max(length, 1e-12);
    for (let d = 0; d < dim; d++) out[r * dim + d] = rows[r * dim + d] * scale;
  });
  return out;
}

/** Products of all pairs of rows: (N, N). */
export function gram(rows, dim) {
  const count = rows.length / dim;
  const out = new Float64Array(count * count);
  for (let a = 0; a < count; a++) {
    for (let b = a; b < count; b++) {
      let sum = 0;
      for (let d = 0; d < dim; d++) sum += rows[a * dim + d] * rows[b * dim + d];
      out[a * count + b] = out[b * count + a] = sum;
    }
  }
  return out;
}

/** Cosines of all pairs of rows: (N, N). */
export function cosines(rows, dim) {
  return gram(unitRows(rows, dim), dim);
}

/** Coordinates of rows in the plane of their first two principal components. */
export function plane(rows, dim) {
  const count = rows.length / dim;
  const centered = Float64Array.from(rows);
  for (let d = 0; d < dim; d++) {
    let mean = 0;
    for (let r = 0; r < count; r++) mean += rows[r * dim + d] / count;
    for (let r = 0; r < count; r++) centered[r * dim + d] -= mean;
  }
  const products = gram(centered, dim);
  const points = Array.from({ length: count }, () => [0, 0]);
  let total = 0;
  for (let r = 0; r < count; r++) total += products[r * count + r];
  const spread = total / Math.max(count, 1);
  const kept = [0, 0];
  if (count > 1 && spread > 1e-9) {
    for (let axis = 0; axis < 2; axis++) {
      const [value, vector] = leading(products, count);
      kept[axis] = Math.max(value, 0) / total;
      const scale = Math.sqrt(Math.max(value, 0));
      let farthest = 0;
      for (let r = 0; r < count; r++) if (Math.abs(vector[r]) > Math.abs(vector[farthest])) farthest = r;
      const sign = vector[farthest] < 0 ? -1 : 1;
      for (let r = 0; r < count; r++) points[r][axis] = sign * scale * vector[r];
      for (let a = 0; a < count; a++)
        for (let b = 0; b < count; b++) products[a * count + b] -= value * vector[a] * vector[b];
    }
  }
  return { points, kept };
}

/** Largest eigenvalue of a symmetric matrix and its vector, by power iteration. */
function leading(matrix, count) {
  let vector = Float64Array.from({ length: count }, (_, i) => Math.sin(i * 12.9898 + 1) + 0.01);
  let value = 0;
  for (let round = 0; round < 300; round++) {
    const next = new Float64Array(count);
    for (let a = 0; a < count; a++) {
      let sum = 0;
      for (let b = 0; b < count; b++) sum += matrix[a * count + b] * vector[b];
      next[a] = sum;
    }
    const size = Math.hypot(...next) || 1;
    let change = 0;
    for (let a = 0; a < count; a++) {
      next[a] /= size;
      change = Math.max(change, Math.abs(next[a] - vector[a]));
    }
    vector = next;
    value = size;
    if (change < 1e-9) break;
  }
  return [value, vector];
}

/** Points turned, and mirrored if need be, so that they lie as near as possible to others. */
export function aligned(points, others) {
  let [xx, xy, yx, yy] = [0, 0, 0, 0];
  points.forEach(([x, y], i) => {
    const [u, v] = others[i];
    xx += x * u; xy += x * v; yx += y * u; yy += y * v;
  });
  const turn = Math.atan2(xy - yx, xx + yy);
  const flip = Math.atan2(xy + yx, xx - yy);
  const turned = Math.hypot(xy - yx, xx + yy) >= Math.hypot(xy + yx, xx - yy);
  return points.map(([x, y]) =>
    turned
      ? [x * Math.cos(turn) - y * Math.sin(turn), x * Math.sin(turn) + y * Math.cos(turn)]
      : [x * Math.cos(flip) + y * Math.sin(flip), x * Math.sin(flip) - y * Math.cos(flip)],
  );
}

/** Cluster of each row by k-means with cosines; the first centers are far from each other. */
export function cluster(rows, dim, k) {
  const unit = unitRows(rows, dim);
  const count = rows.length / dim;
  const dot = (r, center) => {
    let sum = 0;
    for (let d = 0; d < dim; d++) sum += unit[r * dim + d] * center[d];
    return sum;
  };
  const row = (r) => unit.slice(r * dim, (r + 1) * dim);
  const mean = new Float32Array(dim);
  for (let r = 0; r < count; r++) for (let d = 0; d < dim; d++) mean[d] += unit[r * dim + d];
  const order = Array.from({ length: count }, (_, r) => r);
  const centers = [row(order.reduce((a, b) => (dot(b, mean) < dot(a, mean) ? b : a), 0))];
  while (centers.length < Math.min(k, count)) {
    const nearest = order.map((r) => Math.max(...centers.map((center) => dot(r, center))));
    centers.push(row(nearest.indexOf(Math.min(...nearest))));
  }
  let groups = [];
  for (let round = 0; round < 50; round++) {
    const next = order.map((r) => {
      const near = centers.map((center) => dot(r, center));
      return near.indexOf(Math.max(...near));
    });
    if (next.every((group, r) => group === groups[r])) break;
    groups = next;
    centers.forEach((_, group) => {
      const sum = new Float32Array(dim);
      groups.forEach((own, r) => {
        if (own === group) for (let d = 0; d < dim; d++) sum[d] += unit[r * dim + d];
      });
      centers[group] = unitRows(sum, dim);
    });
  }
  return groups;
}
