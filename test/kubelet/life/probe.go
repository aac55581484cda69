package life

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A Probe counts the results of one probe. Its zero value has seen none.
type Probe struct{ successes, failures int }

// Period is the time between two attempts.
func Period(p *corev1.Probe) time.Duration { return seconds(p.PeriodSeconds, 10) }

// Timeout is how long one attempt may take.
func Timeout(p *corev1.Probe) time.Duration { return seconds(p.TimeoutSeconds, 1) }

// Delay is the time before the first attempt.
func Delay(p *corev1.Probe) time.Duration { return time.Duration(p.InitialDelaySeconds) * time.Second }

func seconds(n int32, otherwise int) time.Duration {
	if n <= 0 {
		return time.Duration(otherwise) * time.Second
	}
	return time.Duration(n) * time.Second
}

// Observe counts a result. It returns whether the probe has passed, whether it has failed, by its thresholds; neither if it
// is undecided.
func (p *Probe) Observe(spec *corev1.Probe, success bool) (passed, failed bool) {
	if success {
		p.successes, p.failures = p.successes+1, 0
	} else {
		p.successes, p.failures = 0, p.failures+1
	}
	need := func(n int32, otherwise int) int {
		if n <= 0 {
			return otherwise
		}
		return int(n)
	}
	return p.successes >= need(spec.SuccessThreshold, 1), p.failures >= need(spec.FailureThreshold, 3)
}
