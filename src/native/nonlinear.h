// Exponentials, sigmoid and tanh on vectors, accurate to about 1e-7. Knows nothing about the
// network.
#pragma once

namespace elmokit {

/// x within ±bound. NaN stays NaN: of two operands, one of which is NaN, `min` and `max` return the
/// second.
template <class V>
typename V::F clamp(typename V::F x, float bound) {
    return V::min(V::set(bound), V::max(V::set(-bound), x));
}

/// x if it is positive, else 0. NaN stays NaN.
template <class V>
typename V::F relu(typename V::F x) {
    return V::max(V::set(0.0f), x);
}

/// e^(factor·x); the result must be a normal float: |factor·x| <= 87.
///
/// Computed as 2^(n + f) with an integer n and |f| <= 1/2: 2^f by a polynomial 1 + f·q(f) fitted to
/// minimize the relative error (1.1e-7), then n is added to the exponent.
template <class V>
typename V::F exponential(typename V::F x, float factor) {
    using F = typename V::F;
    const F scale = V::set(1.44269504f * factor);
    const F magic = V::set(12582912.0f);  // 1.5 * 2^23: adding it leaves n in the lowest bits
    const F shifted = V::fma(x, scale, magic);
    const F minus_n = V::sub(magic, shifted);
    const F f = V::fma(x, scale, minus_n);
    F q = V::set(0x1.5bb9e4p-10f);
    q = V::fma(q, f, V::set(0x1.3ceab4p-7f));
    q = V::fma(q, f, V::set(0x1.c6b754p-5f));
    q = V::fma(q, f, V::set(0x1.ebf9bcp-3f));
    q = V::fma(q, f, V::set(0x1.62e42ap-1f));
    q = V::fma(q, f, V::set(1.0f));
    return V::add_to_exponent(q, shifted);
}

/// e^(-factor·x), with factor·x clamped to ±25: beyond that, adding e^-x to 1 changes nothing in
/// float32. The product of three such values is still finite.
template <class V>
typename V::F exp_negative(typename V::F x, float factor) {
    return exponential<V>(clamp<V>(x, 25.0f / factor), -factor);
}

/// e^x for x <= 0; 0 where the result would not be a normal float.
template <class V>
typename V::F exp_or_zero(typename V::F x) {
    const typename V::F minimum = V::set(-87.0f);
    return V::where_less(x, minimum, V::set(0.0f), exponential<V>(V::max(minimum, x), 1));
}

/// sigmoid(a) = 1 / (1 + e^-a)
template <class V>
typename V::F sigmoid(typename V::F a) {
    const typename V::F one = V::set(1.0f);
    return V::div(one, V::add(one, exp_negative<V>(a, 1)));
}

/// tanh(b) = (1 - e^-2b) / (1 + e^-2b)
template <class V>
typename V::F hyperbolic_tangent(typename V::F b) {
    const typename V::F one = V::set(1.0f), e = exp_negative<V>(b, 2);
    return V::div(V::sub(one, e), V::add(one, e));
}

/// sigmoid(a) * tanh(b) with one division.
template <class V>
typename V::F sigmoid_tanh(typename V::F a, typename V::F b) {
    const typename V::F one = V::set(1.0f), e = exp_negative<V>(b, 2);
    return V::div(V::sub(one, e), V::mul(V::add(one, exp_negative<V>(a, 1)), V::add(one, e)));
}

/// The next cell value, sigmoid(f) * c + sigmoid(i) * tanh(j), over a common denominator.
template <class V>
typename V::F next_cell(typename V::F i, typename V::F j, typename V::F f, typename V::F c) {
    const typename V::F one = V::set(1.0f), e = exp_negative<V>(j, 2);
    const typename V::F keep = V::add(one, exp_negative<V>(f, 1));
    const typename V::F take = V::mul(V::add(one, exp_negative<V>(i, 1)), V::add(one, e));
    return V::div(V::fma(c, take, V::mul(V::sub(one, e), keep)), V::mul(keep, take));
}

}  // namespace elmokit
