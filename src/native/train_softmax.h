// The softmax of a language model and its gradients, row by row. The caller computes the logits
// before, and uses their gradient after, with matrix products. Knows nothing about samplers.
//
// The loss of a row is ln(e^true + Σ e^logit) - true over the candidates that are not its true
// word. If the true word is one of the candidates, its gradient replaces that of the candidate
// among the logits, and the caller's products propagate it; otherwise it is added here.
#pragma once

#include <math.h>  // not <cmath>, whose inline functions would be shared (see kernels.h)

#include "kernels.h"
#include "nonlinear.h"

namespace elmokit {

template <class V>
float dot(const float* a, const float* b, int count) {
    typename V::F sums = V::set(0.0f);
    int i = 0;
    for (; i + V::lanes <= count; i += V::lanes)
        sums = V::fma(V::load(a + i), V::load(b + i), sums);
    float sum = V::total(sums);
    for (; i < count; ++i) sum += a[i] * b[i];
    return sum;
}

/// out = factor * x or, with Add, out += factor * x.
template <class V, bool Add>
void scale_into(float factor, const float* x, int count, float* out) {
    const typename V::F f = V::set(factor);
    int i = 0;
    for (; i + V::lanes <= count; i += V::lanes) {
        const typename V::F product = V::mul(f, V::load(x + i));
        V::store(out + i, Add ? V::add(V::load(out + i), product) : product);
    }
    for (; i < count; ++i) out[i] = Add ? out[i] + factor * x[i] : factor * x[i];
}

/// Returns the largest of floor and all logits + bias.
template <class V>
float largest_logit(const float* logits, const float* bias, int columns, float floor) {
    using F = typename V::F;
    F maxima[4] = {V::set(floor), V::set(floor), V::set(floor), V::set(floor)};
    for (int j = 0; j < columns; j += 4 * V::lanes) {
#pragma GCC unroll 4
        for (int n = 0; n < 4; ++n) {
            const int k = j + n * V::lanes;
            maxima[n] = V::max(maxima[n], V::add(V::load(logits + k), V::load(bias + k)));
        }
    }
    return V::largest(V::max(V::max(maxima[0], maxima[1]), V::max(maxima[2], maxima[3])));
}

/// Returns Σ e^(logits + bias - maximum); with Keep, its terms replace the logits.
template <class V, bool Keep>
float exponentials(float* logits, const float* bias, int columns, float maximum) {
    using F = typename V::F;
    const F top = V::set(maximum);
    F sums[4] = {V::set(0.0f), V::set(0.0f), V::set(0.0f), V::set(0.0f)};
    for (int j = 0; j < columns; j += 4 * V::lanes) {
#pragma GCC unroll 4
        for (int n = 0; n < 4; ++n) {
            const int k = j + n * V::lanes;
            const F logit = V::add(V::load(logits + k), V::load(bias + k));
            const F e = exp_or_zero<V>(V::sub(logit, top));
            sums[n] = V::add(sums[n], e);
            if (Keep) V::store(logits + k, e);
        }
    }
    return V::total(V::add(V::add(sums[0], sums[1]), V::add(sums[2], sums[3])));
}

/// Returns the sum of the losses of a block; see `SoftmaxRows`.
template <class V>
double softmax(const SoftmaxRows& s) {
    using F = typename V::F;
    const bool with_gradients = s.hidden_gradient || s.weight_gradient || s.bias_gradient;
    double loss = 0;
    for (int n = 0; n < s.rows; ++n) {
        float* logits = s.logits + std::ptrdiff_t{n} * s.columns;
        const float* hidden = s.hidden + std::ptrdiff_t{n} * s.width;
        const std::ptrdiff_t target = s.targets[n];
        const float* weights = s.weights + target * s.width;
        const float true_logit = dot<V>(hidden, weights, s.width) + s.target_bias[n];
        const bool candidate = target < s.candidates;
        if (candidate) logits[target] = -INFINITY;

        const float maximum = largest_logit<V>(logits, s.bias, s.columns, true_logit);
        const float others = with_gradients
                                 ? exponentials<V, true>(logits, s.bias, s.columns, maximum)
                                 : exponentials<V, false>(logits, s.bias, s.columns, maximum);
        const float true_exp = expf(true_logit - maximum), sum = others + true_exp;
        loss += log(static_cast<double>(sum)) + (static_cast<double>(maximum) - true_logit);
        if (!with_gradients) continue;

        const F share = V::set(1.0f / sum);
        for (int j = 0; j < s.columns; j += V::lanes) {
            const F gradient = V::mul(V::load(logits + j), share);
            V::store(logits + j, gradient);
            if (s.bias_gradient)
                V::store(s.bias_gradient + j, V::add(V::load(s.bias_gradient + j), gradient));
        }
        // true_exp / sum - 1, without cancellation if the word is nearly certain.
        const float gradient = -others / sum;
        if (s.bias_gradient) s.bias_gradient[target] += gradient;
        if (candidate) logits[target] = gradient;
        if (s.hidden_gradient)
            scale_into<V, false>(candidate ? 0.0f : gradient, weights, s.width,
                                 s.hidden_gradient + std::ptrdiff_t{n} * s.width);
        if (s.weight_gradient && !candidate)
            scale_into<V, true>(gradient, hidden, s.width, s.weight_gradient + target * s.width);
    }
    return loss;
}

}  // namespace elmokit
