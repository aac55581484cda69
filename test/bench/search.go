package main

import (
	"github.com/quorate/quorate/test/bench/figures"

	"context"
	"fmt"
	"math"
	"time"

	"github.com/quorate/quorate/test/bench/k8s"
)

const (
	highestRate = "highest rate" // the row of a search

	stepUp    = 1.35 // as long as no step has failed
	closest   = 1.06 // a rate that fails and the best one are no closer
	stepWarm  = time.Second
	stepTries = 2
)

// bisection looks for the highest rate that passes: up by a factor until one fails, or down until one passes, and then
// between the two.
type bisection struct{ rate, best, failed float64 }

// next takes the outcome of the step at the rate and sets the next one. It returns false when the search is over.
func (b *bisection) next(passed bool) bool {
	if passed {
		b.best = b.rate
	} else {
		b.failed = b.rate
	}
	switch {
	case b.failed == 0:
		b.rate *= stepUp
	case b.best == 0:
		b.rate /= stepUp * stepUp
	default:
		b.rate = math.Sqrt(b.best * b.failed)
	}
	return b.failed == 0 || b.best == 0 && b.rate >= 1 || b.best > 0 && b.failed/b.best > closest
}

// search begins at the rate of so many nodes and steps through rates on one cluster. The figures are those of the best step,
// without those per mutation: lists and progress cost the same at any rate, so that only equal rates compare. A step that
// fails is done once more, because one pause of the machine is enough for that, unless the server was overloaded.
func (p *controlPlane) search(ctx context.Context, on *bed, session *k8s.Session) []figures.Row {
	begun := time.Now()
	b := bisection{rate: p.rate}
	rows := rowsOf(&k8s.Outcome{}, time.Second)
	wrong, tries := 0, 0
	leaders := on.CountElections(ctx)
	for more := true; more && time.Since(begun) < p.limits.total; {
		outcome, f := p.attempt(ctx, on, session, b.rate)
		if ctx.Err() != nil {
			break
		}
		wrong += outcome.Errors
		passed := !outcome.Overload && outcome.Errors == 0 && outcome.Mutations.Quantile(0.99) < p.limits.bound
		verdict := "fails"
		switch {
		case passed:
			verdict = "passes"
			rows = rowsOf(outcome, p.limits.step)
			rows[0].Set(figures.ResidentMiB, f.Values[figures.ResidentMiB])
			rows[0].Set(figures.OthersPercent, f.Values[figures.OthersPercent])
		case outcome.Overload:
			verdict = "overloaded"
		}
		printStep(on.Server.Name, on.round, b.rate, outcome, fmt.Sprintf(
			"; %s us of server CPU each, %s MiB to the device, others take %s %%: %s",
			figures.Show(f.Values[figures.ServerMicros]),
			figures.Show(f.Values[figures.DeviceMiB]), figures.Show(f.Values[figures.OthersPercent]), verdict))
		printErrors(outcome)
		if tries++; passed || outcome.Overload || tries == stepTries {
			tries = 0
			more = b.next(passed)
		}
	}
	for i := range rows {
		rows[i].Workload = highestRate + ", " + rows[i].Workload
	}
	rows[0].Workload = highestRate
	rows[0].Set(figures.PerSecond, b.best)
	rows[0].Set(figures.Failures, float64(wrong))
	rows[0].Set(figures.Cancelled, float64(session.Cancelled()))
	rows[0].Set(figures.Elections, float64(leaders()))
	return rows
}

// attempt loads the cluster at one rate.
func (p *controlPlane) attempt(
	ctx context.Context, b *bed, session *k8s.Session, rate float64,
) (*k8s.Outcome, figures.Row) {
	meters, f := b.Meter(b.dir), figures.NewRow("")
	outcome := session.Run(ctx, k8s.Load{Rate: rate, Warm: stepWarm, Length: p.limits.step, StopWhenBehind: true,
		Opened: meters.Open, Closed: meters.Close})
	meters.Charge(&f, float64(outcome.Mutations.Count()))
	return outcome, f
}
