package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/quorate/quorate/test/bench/k8s"
)

const (
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
func (p *controlPlane) search(ctx context.Context, c *cluster, session *k8s.Session, round int) []figures {
	begun := time.Now()
	b := bisection{rate: p.rate}
	rows := rowsOf(&k8s.Outcome{}, time.Second)
	wrong, tries := 0, 0
	leaders := c.countElections(ctx)
	for more := true; more && time.Since(begun) < p.limits.total; {
		outcome, f := p.attempt(ctx, c, session, b.rate)
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
			rows[0].set(residentMiB, f.values[residentMiB])
			rows[0].set(othersPercent, f.values[othersPercent])
		case outcome.Overload:
			verdict = "overloaded"
		}
		printStep(c.server.name, round, b.rate, outcome, fmt.Sprintf(
			"; %s us of server CPU each, %s MiB to the device, others take %s %%: %s", show(f.values[serverMicros]),
			show(f.values[deviceMiB]), show(f.values[othersPercent]), verdict))
		printErrors(outcome)
		if tries++; passed || outcome.Overload || tries == stepTries {
			tries = 0
			more = b.next(passed)
		}
	}
	rows[0].workload = "highest rate"
	rows[0].set(perSecond, b.best)
	rows[0].set(failures, float64(wrong))
	rows[0].set(cancelled, float64(session.Cancelled()))
	rows[0].set(elections, float64(leaders()))
	return rows
}

// attempt loads the cluster at one rate.
func (p *controlPlane) attempt(
	ctx context.Context, c *cluster, session *k8s.Session, rate float64,
) (*k8s.Outcome, figures) {
	meters, f := c.meter(p.dir), newFigures("")
	outcome := session.Run(ctx, k8s.Load{Rate: rate, Warm: stepWarm, Length: p.limits.step, StopWhenBehind: true,
		Opened: meters.open, Closed: meters.close})
	meters.charge(&f, float64(outcome.Mutations.Count()))
	return outcome, f
}
