"""FeatureRegression: the exact posterior of a regression on features with an effect of each arm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from multiplay.features.rows import FeatureRows
from multiplay.feedback import NO_UNITS, Feedback
from multiplay.kernels import factors as tangents
from multiplay.kernels import features as kernels
from multiplay.kernels import residuals
from multiplay.random import Rng, stream_words
from multiplay.types import Arrays, BoolArray, FloatArray, IntArray

TAU = 0.5  # standard deviation of a coefficient before anything is seen
INTERCEPT = 0.5  # mean of the first coefficient; that of the others is 0
PRIORS = 3  # those of new learners, see ``SIZES``, ``ALONE`` and ``NOISE_WEIGHT``
SIZES = {  # of the variance of effects of arms: within a factor of 2.7, intervals are nearly right
    1: np.array([0.0, 0.01, 0.03, 0.1, 0.3]) ** 2,
    2: np.array([0.0, 0.0125, 0.03, 0.075, 0.2]) ** 2,
    3: np.array([0.0, 0.0125, 0.03, 0.075, 0.2]) ** 2,
}
# Without features, from priors 3 on: if arms are alike, no plan is better than others. With 0 in
# place of 0.004, rewards whose means differ by a few thousandths were planned at random.
ALONE = np.array([0.004, 0.0125, 0.03, 0.075, 0.2]) ** 2
EVEN = np.full(5, 0.2)  # chances of the sizes, before anything is seen
CHANCES = np.array([0.01, 0.04, 0.25, 0.35, 0.35])  # without features: arms that are alike are rare
ROUND_0, UNIT_0 = 0.05**2, 0.25  # variances s_u^2 and s_e^2 before anything is seen
ROUND_WEIGHT = 25_000.0  # weight of s_u^2: ten errors of variance 0.02
UNIT_WEIGHT = 10_000.0  # weight of s_e^2: an error of a prediction, once means are known
NOISE_WEIGHT = {
    1: 4.0,
    2: 0.2,
    3: 0.2,
}  # deviations of units in a round that the first s_e^2 counts as
COIN_WEIGHT = 10.0  # weight of k = 0
INDEPENDENT = 0.25  # variance of a unit without effects: the largest in [0, 1]
SHORTEST = 32  # rounds of a challenger
ODDS = np.log(1e9)  # log odds from which a challenger replaces the model: rare losses surprise both

SURE = 5.0  # deviations from which errors go with predictions
SHARE = 0.002  # of the squared errors that this explains, from which it matters

NEW = "new_"  # before the names of the arrays of the challenger

BY_ARM = ("N", "Z", "X")
TRIANGLES = ("R", "z", "ev", "noise", "fit", "bends")
FADING = ("W", "h", "others_P", "others_b")
# Where beliefs of a learner read the state.
ERRORS, RECENT = RESIDUALS = "errors", "recent_errors"
# How many columns multiply, and the origin of the losses: of a model with factors alone.
FACTORS = "factors"


Posterior: TypeAlias = tuple[
    FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray
]


class Reports(NamedTuple):
    """What a round tells of some arms, in every trial.

    Attributes
    ----------
    arms : array of shape (trials, k)
        The arms; -1 is no arm.
    phi : array of shape (trials, k, p)
        Their features in the round of the play.
    units, mean, scatter : arrays of shape (trials, k)
        The units seen (0: nothing is learned), their average loss, and the sum of their squared
        deviations from it; NaN where single units are not known.
    """

    arms: IntArray
    phi: FloatArray
    units: FloatArray
    mean: FloatArray
    scatter: FloatArray

    @classmethod
    def of(
        cls,
        arms: IntArray,
        phi: FloatArray,
        feedback: Feedback,
        offset: FloatArray | None = None,
    ) -> Reports:
        """Return the reports of a play of these arms; ``offset`` is added to the losses."""
        shift = np.zeros(feedback.seen.shape[1]) if offset is None else offset
        found = np.empty((3, *arms.shape))
        told = feedback.seen, feedback.total, *feedback.single_units
        kernels.report(arms, *told, shift, *found)
        return cls(arms, phi, *found)


def played_rows(action: IntArray, rows: FeatureRows) -> tuple[IntArray, FloatArray]:
    """Return the arms that are played, (trials, k) with -1 at the end, and their phi.

    Examples
    --------
    >>> rows = FeatureRows.of([[1.0, 5.0], [1.0, 7.0]])
    >>> arms, phi = played_rows(np.array([[0, 3], [1, 1]]), rows)
    >>> arms
    array([[ 1, -1],
           [ 0,  1]])
    >>> phi[0]
    array([[1., 7.],
           [0., 0.]])
    """
    most = int((action > 0).sum(axis=1).max())
    arms = np.empty((len(action), most), dtype=np.int64)
    phi = np.empty((len(action), most, rows.p))
    kernels.played_rows(action, rows.arm, rows.day, arms, phi)
    return arms, phi


@dataclass(frozen=True)
class FeatureRegression:
    r"""A mixed-effects model of losses, with an exact posterior; all variances are learned.

    .. math::

        \text{loss of a unit} &= \langle \theta, \phi_{t,i} \rangle + b_i + u_{t,i} + \text{noise},
        \\ \theta_j &\sim \mathcal{N}(m_j, \tfrac{1}{4}), \qquad b_i \sim \mathcal{N}(0, s_b^2),
        \qquad u_{t,i} \sim \mathcal{N}(0, s_u^2),

    with :math:`m = (\tfrac{1}{2}, 0, \ldots, 0)`, and :math:`u_{t,i}` shared by the units of an arm
    in a round. The last columns may be factors of the whole loss of a unit,
    :math:`e^{\langle\gamma, \psi\rangle}` for the columns :math:`\psi`: each report then counts as
    that of the linear model that touches it where the parameters are believed to be
    (``kernels.factors``). The average of a units has variance
    :math:`s_u^2 + (s_e^2 + k m (1 - m)) / a` around its mean m. :math:`s_b` has five sizes, weighed
    by their exact evidence. What is learned is in a plain dict of arrays with the trials first; N,
    Z and X have the arms on their second axis, and those that ``SHARED`` names belong to all arms.

    Parameters
    ----------
    effects
        False for the linear model of the literature: :math:`s_b = s_u = 0`, units are independent
        and have variance 1/4.
    discount
        The factor by which the weight of every report fades in a round, in (0, 1).
    follow
        Whether to look for changes: a second posterior begins from the prior now and then, after
        32, 64, 32, 128, ... rounds, and replaces the first when it has predicted the reports since
        then 10^9 times as well.
    priors
        Which sizes :math:`s_b` has, and as how many squared deviations of the units of a round from
        their average the first guess of :math:`s_e^2` counts: 3. 2 has the size 0 without features
        too, and 1 what was before 0.10.0.dev5.

    Examples
    --------
    >>> model, rows = FeatureRegression(), FeatureRows.of([[1.0, -1.0], [1.0, 1.0]])
    >>> arrays = model.start(d=2, p=2, trials=1)
    >>> arms, phi = played_rows(np.array([[2, 1]]), rows)
    >>> feedback = Feedback(np.array([[2, 1]]), np.array([[0.4, 0.6]]))
    >>> for _ in range(100):
    ...     model.learn(arrays, Reports.of(arms, phi, feedback))
    >>> mean, deviation = model.posterior(arrays, rows)
    >>> mean.round(2)
    array([[0.2, 0.6]])
    """

    SHARED: ClassVar[tuple[str, ...]] = (
        *TRIANGLES,
        *FADING,
        *(f"{NEW}{name}" for name in TRIANGLES),
        *RESIDUALS,
        FACTORS,
    )

    effects: bool = True
    discount: float | None = None
    follow: bool = False
    priors: int = PRIORS

    # ------------------------------------------------------------ state

    def sizes(self, p: int) -> FloatArray:
        """Return the variances that effects of arms may have, for p columns."""
        if not self.effects:
            return SIZES[self.priors][:1]
        return ALONE if p == 1 and self.priors > 2 else SIZES[self.priors]

    def start(self, d: int, p: int, trials: int, factors: int = 0, origin: float = 0.0) -> Arrays:
        """Return the state before anything is learned.

        The last ``factors`` columns multiply; losses are those above the ``origin``.
        """
        arrays = self._prior(d, p, trials)
        if factors:
            arrays[FACTORS] = np.tile([float(factors), origin], (trials, 1))
        if self.discount is not None:
            G = len(self.sizes(p))
            arrays |= {"W": np.zeros((trials, p, p)), "h": np.zeros((trials, p))}
            arrays["others_P"] = np.zeros((trials, G, p, p))
            arrays["others_b"] = np.zeros((trials, G, p))
        if self.follow:
            arrays |= {f"{NEW}{name}": array for name, array in self._prior(d, p, trials).items()}
            arrays |= {"age": np.zeros(trials, np.int64), "number": np.ones(trials, np.int64)}
            arrays["since"] = np.zeros(trials)
        return arrays

    def _prior(self, d: int, p: int, trials: int) -> Arrays:
        G, intercept = len(self.sizes(p)), np.zeros(p)
        intercept[0] = INTERCEPT / TAU
        return {
            "N": np.zeros((trials, d)),
            "Z": np.zeros((trials, d)),
            "X": np.zeros((trials, d, p)),
            "R": np.tile(np.eye(p) / TAU, (trials, G, 1, 1)),
            "z": np.tile(intercept, (trials, G, 1)),
            "ev": np.tile(self._first_evidence(p), (trials, 1)),
            "noise": np.tile(self._first_noise(), (trials, 1)),
            "fit": np.zeros((trials, kernels.FITS)),
            "bends": np.zeros((trials, p, 4)),
        }

    def _first_evidence(self, p: int) -> FloatArray:
        chances = (CHANCES if p == 1 else EVEN)[: len(self.sizes(p))]
        evidence: FloatArray = np.log(chances / chances.sum())
        return evidence

    def _first_noise(self) -> FloatArray:
        noise = np.zeros(kernels.NOISES)
        if not self.effects:
            noise[kernels.UNIT] = INDEPENDENT
            return noise
        noise[[kernels.UU, kernels.EE, kernels.QQ]] = ROUND_WEIGHT, UNIT_WEIGHT, COIN_WEIGHT
        noise[kernels.TU], noise[kernels.TE] = ROUND_WEIGHT * ROUND_0, UNIT_WEIGHT * UNIT_0
        noise[kernels.ROUND], noise[kernels.UNIT] = ROUND_0, UNIT_0
        return noise

    # ------------------------------------------------------------ learning

    def learn(self, arrays: Arrays, reports: Reports) -> None:
        """Learn from the reports of a round, and change the arrays."""
        if ERRORS in arrays:
            self._add_residuals(arrays, self._linear(arrays, "", reports)[0])
        scatter = (arrays["W"], arrays["h"]) if "W" in arrays else (NO_UNITS[:0, None], NO_UNITS)
        self._add(arrays, "", scatter, reports)
        if self.follow:
            self._add(arrays, NEW, (NO_UNITS[:0, None], NO_UNITS), reports)

    def _add_residuals(self, arrays: Arrays, reports: Reports) -> None:
        """Add the errors of predictions of what was seen, in one trial."""
        arms, phi, units, mean, _ = (one[0] for one in reports)
        (seen,) = ((arms >= 0) & (units > 0.0)).nonzero()
        if len(seen):
            of_round = arms[seen], phi[seen], units[seen], mean[seen]
            N, Z, X, R, z, ev, noise, sums, recent = (
                arrays[name][0] for name in (*BY_ARM, "R", "z", "ev", "noise", *RESIDUALS)
            )
            of_model = N, Z, X, R, z, ev, noise, self.sizes(X.shape[-1])
            residuals.add_residuals(*of_round, *of_model, sums, recent)

    def _add(
        self, arrays: Arrays, which: str, scatter: tuple[FloatArray, FloatArray], reports: Reports
    ) -> None:
        names = [f"{which}{name}" for name in (*BY_ARM, *TRIANGLES)]
        if FACTORS in arrays:  # the linear model touches at what is believed after the round
            after = {name: arrays[name].copy() for name in names} | {FACTORS: arrays[FACTORS]}
            nothing = NO_UNITS[:0, None], NO_UNITS
            self._learn(after, names, nothing, self._linear(arrays, which, reports)[0])
            reports, log = self._linear(after, which, reports)
            arrays[f"{which}ev"] -= log[:, None]  # densities of losses, not of what is linear
        self._learn(arrays, names, scatter, reports)

    def _learn(
        self,
        arrays: Arrays,
        names: Iterable[str],
        scatter: tuple[FloatArray, FloatArray],
        reports: Reports,
    ) -> None:
        N, Z, X, R, z, ev, noise, fit, bends = (arrays[name] for name in names)
        own = N, Z, X, R, z, ev, noise, fit, bends
        within = UNIT_WEIGHT / NOISE_WEIGHT[self.priors] if self.effects else 0.0
        kernels.learn(*reports, *own, *scatter, self.sizes(X.shape[-1]), within)

    def _linear(self, arrays: Arrays, which: str, reports: Reports) -> tuple[Reports, FloatArray]:
        """Return the reports as those of a linear model, and the sum of their logs of factors."""
        log = np.zeros(len(reports.arms))
        if FACTORS not in arrays:
            return reports, log
        x, base, eta = self._tangent(arrays, reports.arms, reports.phi, which)
        level, within = np.empty((2, *base.shape))
        told = reports.units, reports.mean, reports.scatter
        tangents.made_linear(*told, arrays[FACTORS], base, eta, level, within, log)
        return reports._replace(phi=x, mean=level, scatter=within), log

    def _tangent(
        self, arrays: Arrays, arms: IntArray, phi: FloatArray, which: str = ""
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return x, base and eta of some arms, see ``kernels.factors``; (trials, k, p) and less."""
        x, base, eta = np.empty(phi.shape), *np.empty((2, *arms.shape))
        N, Z, X, R, z, ev = (arrays[f"{which}{name}"] for name in (*BY_ARM, "R", "z", "ev"))
        own = N, Z, X, R, z, ev, self.sizes(X.shape[-1])
        phi = phi if phi.flags.writeable else phi.copy()  # as the kernel is compiled for
        tangents.tangent(arms, phi, *own, arrays[FACTORS], x, base, eta)
        return x, base, eta

    def _touching(
        self, arrays: Arrays, rows: FeatureRows
    ) -> tuple[FeatureRows, FloatArray, FloatArray]:
        """Return the rows of the linear model at all arms, and how its means become losses.

        The mean loss is scale times that of the linear model, plus a constant.
        """
        trials, d = arrays["N"].shape
        phi = np.broadcast_to(rows.arm * rows.day[:, None], (trials, d, rows.p))
        arms = np.tile(np.arange(d), (trials, 1))
        x, base, eta = self._tangent(arrays, arms, np.ascontiguousarray(phi))
        return FeatureRows.of(x), np.exp(eta), _rest(arrays[FACTORS][:, 1:], base, eta)

    def slopes(
        self, arrays: Arrays, arms: IntArray, phi: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        r"""Return x, w and a constant, for some arms of one trial with the features phi, (k, p).

        Where parameters are as believed, or near to that, the mean loss of a unit is
        :math:`\langle x, \theta \rangle + w b_i` plus the constant.
        """
        if FACTORS not in arrays:
            return phi, np.ones(len(arms)), np.zeros(len(arms))
        x, base, eta = self._tangent(arrays, arms[None], np.ascontiguousarray(phi[None]))
        scale = np.exp(eta[0])
        return scale[:, None] * x[0], scale, _rest(arrays[FACTORS][0, 1], base[0], eta[0])

    def means(self, arrays: Arrays, arms: IntArray, phi: FloatArray) -> FloatArray:
        """Return the mean loss of some arms of one trial, as ``posterior``."""
        if FACTORS in arrays:
            _, base, eta = self._tangent(arrays, arms[None], phi[None])
            found: FloatArray = np.exp(eta[0]) * base[0] - arrays[FACTORS][0, 1]
            return found
        N, Z, X, R, z, ev = (arrays[name][0] for name in (*BY_ARM, "R", "z", "ev"))
        means = np.empty(len(arms))
        residuals.means_of(arms, phi, N, Z, X, R, z, ev, self.sizes(X.shape[-1]), means)
        return means

    def pass_round(self, arrays: Arrays) -> None:
        """Let a round pass, before its reports are learned: forget, or look for a change."""
        if self.discount is not None:
            self._fade(arrays, self.discount)
        if self.follow:
            self._challenge(arrays)

    def absent(self, arrays: Arrays, rounds: int) -> None:
        """Let rounds pass for arms that cannot be played; ``arrays`` has no other arms.

        ``pass_round`` for all other arms comes after it. What the absent arms say of theta is kept
        for that in ``others_P`` and ``others_b``; all other shared arrays stay.
        """
        if self.follow:
            wins, done = self._contest(arrays)
            self._replace(arrays, wins, BY_ARM)
            self._begin(arrays, wins | done, BY_ARM)
        if self.discount is not None:
            for name in BY_ARM:
                arrays[name] *= self.discount**rounds
            self._add_arms(arrays, arrays["others_P"], arrays["others_b"])

    def _fade(self, arrays: Arrays, discount: float) -> None:
        """Multiply the weights of all reports, and eliminate the effects of arms again."""
        for name in (*BY_ARM, "W", "h"):
            arrays[name] *= discount
        prior = self._first_evidence(arrays["X"].shape[2])
        arrays["ev"][:] = prior + discount * (arrays["ev"] - prior)
        if self.effects:
            first, noise = self._first_noise(), arrays["noise"]
            sums = slice(0, kernels.ROUND)
            noise[:, sums] = first[sums] + discount * (noise[:, sums] - first[sums])
        fit = arrays["fit"]
        squares = fit[:, [kernels.SLOPE_V, kernels.BEND_V]] * discount**2  # of weights
        centre = fit[:, kernels.CENTRE].copy()
        fit *= discount
        arrays["bends"][:, :, :3] *= [discount, discount**2, discount]
        fit[:, [kernels.SLOPE_V, kernels.BEND_V]], fit[:, kernels.CENTRE] = squares, centre
        P, b = arrays["others_P"], arrays["others_b"]
        P += arrays["W"][:, None] + np.eye(P.shape[2]) / TAU**2
        b += arrays["h"][:, None]
        b[:, :, 0] += INTERCEPT / TAU**2
        self._add_arms(arrays, P, b)
        kernels.factor(P, b, arrays["R"], arrays["z"])
        P[:], b[:] = 0.0, 0.0

    def _add_arms(self, arrays: Arrays, P: FloatArray, b: FloatArray) -> None:
        N, Z, X = (arrays[name] for name in BY_ARM)
        kernels.add_arms(N, Z, X, self.sizes(X.shape[-1]), P, b)

    def _challenge(self, arrays: Arrays) -> None:
        """Let the challenger replace the model where it is better; begin others in turn."""
        age, number = arrays["age"], arrays["number"]
        wins, done = self._contest(arrays)
        over = wins | done
        if over.any():
            self._replace(arrays, wins, (*BY_ARM, *TRIANGLES))
            self._begin(arrays, over, (*BY_ARM, *TRIANGLES))
            since = np.where(over, log_evidence(arrays["ev"]), arrays["since"])
            arrays["since"][:] = since
            number[:] = np.where(wins, 1, number + done)
            age[over] = 0
        age += 1

    def _contest(self, arrays: Arrays) -> tuple[BoolArray, BoolArray]:
        """Return in which trials the challenger is better, and in which its time is over."""
        number, since = arrays["number"], arrays["since"]
        log_odds = log_evidence(arrays[f"{NEW}ev"]) - (log_evidence(arrays["ev"]) - since)
        return log_odds > ODDS, arrays["age"] >= SHORTEST * (number & -number)

    def _replace(self, arrays: Arrays, trials: BoolArray, names: Iterable[str]) -> None:
        """Replace arrays of the model by those of the challenger."""
        for k in np.flatnonzero(trials):
            for name in names:
                arrays[name][k] = arrays[f"{NEW}{name}"][k]

    def _begin(self, arrays: Arrays, trials: BoolArray, names: Iterable[str]) -> None:
        """Let the challenger begin from the prior, with the noise that the model has learned.

        With noise of its own, it would take a few equal losses for no noise at all, and win.
        """
        if trials.any():
            _, d, p = arrays["X"].shape
            prior = self._prior(d, p, 1)
            for k in np.flatnonzero(trials):
                for name in names:
                    known = arrays[name][k] if name == "noise" else prior[name][0]
                    arrays[f"{NEW}{name}"][k] = known

    # ------------------------------------------------------------ beliefs

    def draw(self, arrays: Arrays, rows: FeatureRows, rng: Rng) -> FloatArray:
        """Draw the mean loss of every arm from the posterior, (trials, d): one theta for all."""
        means, of_losses = np.empty(arrays["N"].shape), None
        if FACTORS in arrays:
            rows, *of_losses = self._touching(arrays, rows)
        words = stream_words(rng, len(means))
        kernels.draw(words, *self._posterior(arrays), rows.arm, rows.day, means)
        return means if of_losses is None else of_losses[0] * means + of_losses[1]

    def posterior(self, arrays: Arrays, rows: FeatureRows) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the standard deviation of every arm's mean loss, (trials, d)."""
        (mean, deviation), of_losses = np.empty((2, *arrays["N"].shape)), None
        if FACTORS in arrays:
            rows, *of_losses = self._touching(arrays, rows)
        kernels.believe(*self._posterior(arrays), rows.arm, rows.day, mean, deviation)
        if of_losses is not None:
            mean, deviation = of_losses[0] * mean + of_losses[1], of_losses[0] * deviation
        return mean, deviation

    def joint(
        self, arrays: Arrays, rows: FeatureRows, action: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the standard deviation of <a, means> in every trial, (trials,)."""
        units, known = action.astype(float), np.zeros(len(action))
        if FACTORS in arrays:
            rows, scale, rest = self._touching(arrays, rows)
            units, known = units * scale, (units * rest).sum(axis=1)
        phi = np.einsum("td,tdp->tp", units, rows.arm * rows.day[:, None], dtype=float)
        mean, deviation = self.weighted(arrays, units[:, None], phi[:, None])
        return mean[:, 0] + known, deviation[:, 0]

    def weighted(
        self, arrays: Arrays, units: FloatArray, phi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return mean and deviation of :math:`\langle w, b \rangle + \langle x, \theta \rangle`.

        Several for each trial: w are ``units``, (trials, k, d), and x is ``phi``, (trials, k, p).
        Where w are the units of some plans and x the sums of their features, it is what these cost
        together.
        """
        mean, deviation = np.empty((2, *units.shape[:2]))
        kernels.believe_plans(*self._posterior(arrays), units, phi, mean, deviation)
        return mean, deviation

    def contrasts(
        self,
        arrays: Arrays,
        weights: FloatArray,
        shared: FloatArray | None = None,
        arms: IntArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return the mean and the deviation of combinations of coefficients and own effects.

        .. math::

            \langle w_r, \theta \rangle + s_r \bar b + b_{i_r}, \qquad
            \bar b = \tfrac1d \textstyle\sum_i b_i,

        in every trial, (trials, r). The intercept, the levels of a category and the own effects of
        arms are confounded: only their differences are known well.

        Parameters
        ----------
        weights : array of shape (r, p)
            The weights w_r of the coefficients.
        shared : array of shape (r,)
            The weights s_r of the average own effect; 0 if not given.
        arms : array of shape (r,)
            The arms i_r; -1, or not given: no arm.
        """
        r, trials = len(weights), len(arrays["N"])
        shared = np.zeros(r) if shared is None else shared
        arms = np.full(r, -1) if arms is None else arms
        mean, deviation = np.empty((2, trials, r))
        kernels.contrasts(*self._posterior(arrays), weights, shared, arms, mean, deviation)
        return mean, deviation

    def misfit(self, arrays: Arrays, trial: int = 0) -> float | None:
        """Return the share of squared errors that a better shape would explain, or None.

        Errors of predictions that go with the predictions, with their squares or with squares of
        features show that coefficients change, or that losses are no linear function of the
        features. Then intervals of this model are too narrow. None: nothing of the kind was found;
        the chance to find it where the model holds is below 1 %.
        """
        fit, bends = arrays["fit"][trial], arrays["bends"][trial, :, :3]
        sums = [fit[kernels.SLOPE : kernels.BEND], fit[kernels.BEND : kernels.ERRORS], *bends]
        share = 0.0
        for total, variance, squares in sums:
            if total**2 > SURE**2 * variance > 0:
                share = max(share, total**2 / (squares * fit[kernels.ERRORS]))
        return float(share) if share > SHARE else None

    def _posterior(self, arrays: Arrays) -> Posterior:
        N, Z, X, R, z, ev = (arrays[name] for name in (*BY_ARM, "R", "z", "ev"))
        return N, Z, X, R, z, ev, self.sizes(X.shape[-1])


def _rest(zero: Any, base: FloatArray, eta: FloatArray) -> FloatArray:
    """Return what is added to exp(eta) times the mean of the linear model, see ``_touching``."""
    rest: FloatArray = np.exp(eta) * (zero - base * eta) - zero
    return rest


def log_evidence(ev: FloatArray) -> FloatArray:
    """Return the log evidence of all sizes together, but for a constant for each report."""
    most = np.maximum.reduce(ev, axis=-1)  # of every round: faster than the methods of arrays
    total: FloatArray = most + np.log(np.add.reduce(np.exp(ev - most[..., None]), axis=-1))
    return total
