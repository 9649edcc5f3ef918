"""Slow reference of the belief model and of the draws of ``BootstrapCTS``.

Plain loops over arms, written from the specification; it shares no code with the package. All
numbers are shares of the range: (loss - lowest low) / scale, one origin for all arms.

    twin = BeliefTwin(3, discount=None, low=[0, 0, 0], high=[1, 1, 1])
    twin.tell({0: [0.2, 0.3], 2: Total(4, 1.2)})    # one round, arms in the order of the set
    twin.sums(0)               # Sums of arm 0: n, n2, A2, R, mean, B, W, dof, F
    twin.gn, twin.gd           # surprises that go together
    twin.noise()               # Noise: A2 of the specification, numbers and lists by arm
    twin.noise_by_mean()       # the same, where the noise of a unit goes with a power of the mean
    twin.beliefs(level=0.95)   # list of Belief by arm: mean, low, high, variance, nu
    twin.estimate([1, 0, 4])   # Estimate of a plan: total, low, high, variance, nu
    twin.core(0)               # (mean, variance) of what was seen, in draws of BootstrapCTS
    twin.matched(0)            # (mean, variance) of the moment-matched draw
    twin.draw(0, rng, size)    # exact ends: V0 low + V1 high + Vn core

Reports of several parts are told as one report, units that are missing are left out, and a
correction is a new twin that is told everything again. With ``window=W`` the sums are those of a
new twin that was told the last W rounds only.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy import stats

from multiplay.types import FloatArray

KAPPA = 6.0  # degrees of freedom of what all arms say about the noise of one
RHO0 = 0.2  # share of the day effect, in a prior of one report
SPREAD = 0.25  # noise before anything was seen, if tails may be heavy
END_WEIGHT = 1.0
SIZES = tuple(0.5 * 2.0**-k for k in range(13))  # s_b: how far apart arms are
ROUNDING = 1e-24  # squared deviation of a unit, which rounding alone may leave
POWERS = tuple(0.25 * j for j in range(9))  # p: the noise of a unit goes with m^p
LEAST_MEAN = 1e-6
MOST = 0.999  # largest variance of a draw, in units of mean (1 - mean)


class Total(NamedTuple):
    """A report of ``units`` units of which only the sum of the losses is known."""

    units: int
    total: float


Report = Sequence[float] | Total


@dataclass
class Sums:
    """The nine sums of an arm."""

    n: float = 0.0
    n2: float = 0.0
    A2: float = 0.0
    R: float = 0.0
    mean: float = 0.0
    B: float = 0.0
    W: float = 0.0
    dof: float = 0.0
    F: float = 0.0

    @property
    def free(self) -> float:
        return max(self.R - 1.0, 0.0)

    @property
    def freedom(self) -> float:
        return self.dof + self.free

    @property
    def gain(self) -> float:
        return max(self.n - self.A2 / self.n2, 0.0) if self.n > 0 else 0.0

    def fade(self, g: float) -> None:
        for name in ("n", "R", "B", "W", "dof", "F"):
            setattr(self, name, getattr(self, name) * g)
        self.n2 *= g * g
        self.A2 *= g * g


@dataclass(frozen=True)
class Noise:
    """What is known about the noise; ``s1, s, v, vp, nu`` are lists by arm, s is a variance."""

    c: float
    lam: float
    gm: float
    t0: float
    up: float
    se: float  # s_e^2
    su0: float
    su: float
    ends: float
    sg: float  # s_g^2
    s1: list[float]
    s: list[float]
    v: list[float]
    vp: list[float]
    nu: list[float]


class Belief(NamedTuple):
    mean: float
    low: float
    high: float
    variance: float
    nu: float


class Estimate(NamedTuple):
    total: float
    low: float
    high: float
    variance: float
    nu: float


@dataclass(frozen=True)
class Size:
    """The model of one s_b: its weight pi, and lists by arm."""

    log_evidence: float
    P: float
    mu: float
    h: list[float]
    f: list[float]
    m: list[float]
    C: list[float]


@dataclass
class BeliefTwin:
    """Sums of ``d`` arms, and what follows from them; ``w`` is that of ``BootstrapCTS``."""

    d: int
    discount: float | None = None
    window: int | None = None
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    w: float = 1.0
    arms: list[Sums] = field(default_factory=list)
    gn: float = 0.0
    gd: float = 0.0
    rounds: list[dict[int, Report]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.arms = [Sums() for _ in range(self.d)]
        self.gn = self.gd = 0.0

    def sums(self, arm: int) -> Sums:
        return self.arms[arm]

    def bounds(self, arm: int) -> tuple[float, float]:
        low = 0.0 if self.low is None else float(self.low[arm])
        high = 1.0 if self.high is None else float(self.high[arm])
        return low, high

    # ------------------------------------------------------------------ sums

    def tell(self, reports: Mapping[int, Report]) -> None:
        """Book a round: the units seen of each arm, or their total."""
        self.rounds.append(dict(reports))
        if self.window is None:
            self.book(reports)
            return
        self.clear()
        for told in self.rounds[-self.window :]:
            self.book(told)

    def book(self, reports: Mapping[int, Report]) -> None:
        if self.discount is not None:
            for arm in self.arms:
                arm.fade(self.discount)
            self.gn *= self.discount
            self.gd *= self.discount
        r = r2 = t = t2 = 0.0
        J = 0
        for i in sorted(reports):
            a, m, W, F, dof = summary(reports[i])
            if a < 1:
                continue
            arm = self.arms[i]
            d = m - arm.mean
            step = arm.n * a / (arm.n + a) * d**2
            if arm.n > 0:
                k = math.sqrt(arm.A2) / arm.n
                r, r2, t, t2, J = r + d, r2 + d**2, t + k, t2 + k**2, J + 1
            arm.B += step
            arm.F += F + step**2
            arm.mean += a / (arm.n + a) * d
            arm.n += a
            arm.n2 += a
            arm.A2 += a * a
            arm.R += 1
            arm.W += W
            arm.dof += dof
        self.gn += r**2 - r2
        self.gd += J * (J - 1) + t**2 - t2

    # ----------------------------------------------------------------- noise

    def noise(self) -> Noise:
        arms = self.arms
        n, D = sum(arm.n for arm in arms), sum(arm.freedom for arm in arms)
        within = sum(arm.W + arm.B for arm in arms)
        c = lightness(D, sum(arm.F for arm in arms), within, n)
        lam = c * D / (D + 2.0)
        gm = sum(arm.n * arm.mean for arm in arms) / n if n > 0 else 0.5
        apart = sum(arm.n * (arm.mean - gm) ** 2 for arm in arms)
        t0 = ((1.0 - lam) * SPREAD + (apart + within) / 2.0) / (1.0 + n)

        om = [1.0 / (arm.freedom + KAPPA) for arm in arms]
        up = (t0 * max(om) + sum(arm.B * o for arm, o in zip(arms, om, strict=True))) / (
            max(om) + sum(arm.free * o for arm, o in zip(arms, om, strict=True))
        )
        ow = [1.0 / (arm.dof + KAPPA) for arm in arms]
        se = (2.0 * max(ow) * up + sum(arm.W * o for arm, o in zip(arms, ow, strict=True))) / (
            2.0 * max(ow) + sum(arm.dof * o for arm, o in zip(arms, ow, strict=True))
        )
        s1 = [(KAPPA * se + c**2 * arm.W) / (KAPPA + c**2 * arm.dof) for arm in arms]
        su0, su = self.day_effect(se, s1)
        s = [own_noise(arm, c, se, su) for arm in arms]
        return Noise(
            c=c,
            lam=lam,
            gm=gm,
            t0=t0,
            up=up,
            se=se,
            su0=su0,
            su=su,
            ends=END_WEIGHT * (1.0 - lam) * (gm**2 + (1.0 - gm) ** 2) / (n + 1.0) ** 2,
            sg=min(max(self.gn, 0.0) / (self.gd + 2.0), su),
            s1=s1,
            s=s,
            v=[variance(arm, own, su) for arm, own in zip(arms, s, strict=True)],
            vp=[variance(arm, se, su0) for arm in arms],
            nu=[min(KAPPA, 2.0 + D) + c**2 * arm.freedom for arm in arms],
        )

    def day_effect(self, se: float, s1: Sequence[float]) -> tuple[float, float]:
        """Return s_u^2 by data alone, and with a prior of one report."""
        n2 = sum(arm.n2 for arm in self.arms)
        d0 = sum(arm.A2 for arm in self.arms) / n2 if n2 > 0 else 1.0
        excess = sum(arm.B - arm.free * own for arm, own in zip(self.arms, s1, strict=True))
        gain = sum(arm.gain for arm in self.arms)
        by_data = max(0.0, excess / (gain + d0))
        return by_data, max(0.0, (excess + RHO0 * d0 * se) / (gain + d0))

    def means(self) -> list[float]:
        """Return the believed mean of each arm, which compares arms by the noise of all of them."""
        pi, models = self.sizes(self.noise())
        return [sum(p * one.m[i] for p, one in zip(pi, models, strict=True)) for i in range(self.d)]

    def power(self, means: Sequence[float]) -> float:
        """Return the posterior mean of p, by how the squares of arms follow their means."""
        seen = [i for i, arm in enumerate(self.arms) if arm.n > 0]
        arms = [self.arms[i] for i in seen]
        normal = sum(a.W**2 / (a.dof + 2) + a.B**2 / (a.free + 2) for a in arms)
        if sum(arm.W + arm.B for arm in arms) <= ROUNDING * sum(arm.n for arm in arms):
            return 0.0
        c = 2 / (max(sum(arm.F for arm in arms) / normal, 3.0) - 1)
        known = [(max(means[i], LEAST_MEAN), self.arms[i]) for i in seen]
        known = [(m, arm) for m, arm in known if arm.freedom > 0]
        logs = []
        for p in POWERS:
            squares = sum((arm.W + arm.B) / m**p for m, arm in known)
            freedom = sum(arm.freedom for _, arm in known)
            fit = sum(arm.freedom * p * math.log(m) for m, arm in known)
            logs.append(-c / 2 * (fit + freedom * math.log(squares)))
        weights = [math.exp(one - max(logs)) for one in logs]
        return dot(weights, POWERS) / sum(weights)

    def noise_by_mean(self) -> Noise:
        """Return the noise in units of m^p: what is shown, and how sure an average is."""
        before, means = self.noise(), self.means()
        power = self.power(means)
        g = [max(m, LEAST_MEAN) ** power for m in means]
        n = [arm.n for arm in self.arms]
        if sum(n) > 0:
            g = [one * sum(n) / dot(n, g) for one in g]
        scaled = replace(self, arms=[], rounds=[])
        scaled.arms = [
            replace(arm, B=arm.B / one, W=arm.W / one, F=arm.F / one**2)
            for arm, one in zip(self.arms, g, strict=True)
        ]
        scaled.gn, scaled.gd = self.gn, self.gd
        after = scaled.noise()
        s = [one * own for one, own in zip(g, after.s, strict=True)]
        v = [one * own for one, own in zip(g, after.v, strict=True)]
        return replace(after, s=s, v=v, se=before.se, su0=before.su0, vp=before.vp)

    # --------------------------------------------------------------- beliefs

    def sizes(self, noise: Noise) -> tuple[list[float], list[Size]]:
        """Return the weight pi of each s_b, and its model."""
        models = [self.model(noise, s) for s in SIZES]
        top = max(model.log_evidence for model in models)
        weights = [math.exp(model.log_evidence - top) for model in models]
        return [weight / sum(weights) for weight in weights], models

    def model(self, noise: Noise, s: float) -> Size:
        h, f = [0.0] * self.d, [1.0] * self.d
        logs = 0.0
        for i, arm in enumerate(self.arms):
            if arm.n > 0:
                h[i] = 1.0 / (noise.vp[i] + s**2)
                f[i] = noise.vp[i] / (noise.vp[i] + s**2)
                logs += math.log(noise.vp[i] + s**2)
        P = 4.0 + sum(h)
        mu = (2.0 + sum(one * arm.mean for one, arm in zip(h, self.arms, strict=True))) / P
        misfit = sum(one * (arm.mean - mu) ** 2 for one, arm in zip(h, self.arms, strict=True))
        return Size(
            log_evidence=math.log(s) - (logs + math.log(P) + misfit + 4.0 * (mu - 0.5) ** 2) / 2.0,
            P=P,
            mu=mu,
            h=h,
            f=f,
            m=[(1.0 - f[i]) * arm.mean + f[i] * mu for i, arm in enumerate(self.arms)],
            C=[(1.0 - f[i]) ** 2 * noise.v[i] + f[i] ** 2 * s**2 for i in range(self.d)],
        )

    def beliefs(self, level: float = 0.95) -> list[Belief]:
        """Return mean and interval of the mean loss of a unit, by arm, cut to its range."""
        noise = self.noise_by_mean()
        pi, models = self.sizes(noise)
        answer = []
        for i in range(self.d):
            m = sum(p * model.m[i] for p, model in zip(pi, models, strict=True))
            var = sum(
                p
                * (
                    model.C[i]
                    + model.f[i] ** 2 * (1.0 / model.P + noise.ends)
                    + (model.m[i] - m) ** 2
                )
                for p, model in zip(pi, models, strict=True)
            )
            half = quantile(level, noise.nu[i]) * math.sqrt(var)
            ends = self.bounds(i)
            low, high = cut(m - half, *ends), cut(m + half, *ends)
            answer.append(Belief(cut(m, *ends), low, high, var, noise.nu[i]))
        return answer

    def estimate(self, plan: Sequence[int], level: float = 0.95) -> Estimate:
        """Return the expected cost of a plan, units by arm, with its interval."""
        noise = self.noise_by_mean()
        pi, models = self.sizes(noise)
        means = [belief.mean for belief in self.beliefs(level)]
        raw = sum(p * dot(plan, model.m) for p, model in zip(pi, models, strict=True))
        var = sum(
            p * self.plan_variance(noise, model, plan, raw)
            for p, model in zip(pi, models, strict=True)
        )
        u = [
            plan[i] ** 2 * sum(p * model.C[i] for p, model in zip(pi, models, strict=True))
            for i in range(self.d)
        ]
        nu = KAPPA
        if sum(u) > 0:
            parts = sum(one**2 / own for one, own in zip(u, noise.nu, strict=True))
            nu = max(KAPPA, sum(u) ** 2 / parts)
        half = quantile(level, nu) * math.sqrt(var)
        lowest = dot(plan, [self.bounds(i)[0] for i in range(self.d)])
        highest = dot(plan, [self.bounds(i)[1] for i in range(self.d)])
        total = dot(plan, means)
        low, high = cut(total - half, lowest, highest), cut(total + half, lowest, highest)
        return Estimate(total, low, high, var, nu)

    def plan_variance(self, noise: Noise, model: Size, plan: Sequence[int], total: float) -> float:
        """Return what one s_b adds to the variance of a plan."""
        scaled = [math.sqrt(arm.A2) / arm.n if arm.n > 0 else 0.0 for arm in self.arms]
        shared = dot(plan, model.f)
        b = [plan[i] * (1.0 - model.f[i]) * scaled[i] for i in range(self.d)]
        K = sum(b) + shared * dot(model.h, scaled) / model.P
        return (
            sum(plan[i] ** 2 * model.C[i] for i in range(self.d))
            + shared**2 * (1.0 / model.P + noise.ends)
            + (dot(plan, model.m) - total) ** 2
            + noise.sg * (K**2 - sum(one**2 for one in b))
        )

    # ---------------------------------------------------------- BootstrapCTS

    def within(self, arm: int) -> tuple[float, float]:
        """Return W + B with the noise of units known by totals only, and the day factor."""
        noise, sums = self.noise(), self.arms[arm]
        own = noise.s[arm]
        rho = noise.su / (noise.su + own)
        hidden = max(sums.n - sums.R - sums.dof, 0.0)
        factor = max(1.0, 1.0 + rho * (sums.A2 / sums.n - 1.0))
        return sums.W + hidden * own + sums.B, factor

    def core(self, arm: int) -> tuple[float, float]:
        """Return mean and variance of the Beta of the units seen, on [low, high] of the arm."""
        sums = self.arms[arm]
        squares, factor = self.within(arm)
        low, high = self.bounds(arm)
        var = factor * squares / (sums.n * (sums.n + 1.0))
        return sums.mean, min(var, MOST * (sums.mean - low) * (high - sums.mean))

    def matched(self, arm: int) -> tuple[float, float]:
        """Return mean and variance of the moment-matched draw (range [0, 1] only)."""
        sums, w = self.arms[arm], self.w
        squares, factor = self.within(arm)
        N = sums.n + 2.0 * w
        m = (sums.n * sums.mean + w) / N
        ends = w * m**2 + w * (1.0 - m) ** 2
        var = (ends + squares + sums.n * (sums.mean - m) ** 2) / (N * (N + 1.0)) * factor
        return m, min(var, MOST * m * (1.0 - m))

    def draw(self, arm: int, rng: np.random.Generator, size: int) -> FloatArray:
        """Draw means of a seen arm: Dirichlet(w, w, n) weights of low, high and the core."""
        mean, var = self.core(arm)
        low, high = self.bounds(arm)
        weights = rng.dirichlet([self.w, self.w, self.arms[arm].n], size)
        core = np.full(size, mean)
        if var > 0:
            share = (mean - low) / (high - low)
            counts = share * (1.0 - share) * (high - low) ** 2 / var - 1.0
            core = low + (high - low) * rng.beta(share * counts, (1.0 - share) * counts, size)
        drawn: FloatArray = weights[:, 0] * low + weights[:, 1] * high + weights[:, 2] * core
        return drawn


def summary(report: Report) -> tuple[int, float, float, float, int]:
    """Return units, average, W', F' and degrees of freedom of one report."""
    if isinstance(report, Total):
        return report.units, report.total / max(report.units, 1), 0.0, 0.0, 0
    m = W = F = 0.0
    for k, x in enumerate(report):
        d = x - m
        z = d**2 * k / (k + 1)
        W, F, m = W + z, F + z**2, m + d / (k + 1)
    return len(report), m, W, F, len(report) - 1


def lightness(D: float, F: float, within: float, n: float) -> float:
    """Return c: 1 for light tails, small where events are rare, 0 if nothing varied."""
    if within <= ROUNDING * n:
        return 0.0
    kurt = D * F / within**2
    return min(1.0, 2.0 / (kurt - 1.0)) if kurt > 1 else 1.0


def own_noise(arm: Sums, c: float, se: float, su: float) -> float:
    """Return s_i^2."""
    between = arm.B * se / (se + arm.gain / arm.free * su) if arm.free > 0 else 0.0
    return (KAPPA * se + c**2 * (arm.W + between)) / (KAPPA + c**2 * arm.freedom)


def variance(arm: Sums, unit: float, day: float) -> float:
    """Return the variance of an arm's average; 0 if unseen."""
    return (unit * arm.n2 + day * arm.A2) / arm.n**2 if arm.n > 0 else 0.0


def quantile(level: float, nu: float) -> float:
    return float(stats.t.ppf((1.0 + level) / 2.0, nu))


def cut(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
