package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/figures"
)

// mostP99 is what others' puts may take during an attack that allows no more. Without an attack it is 2 to 4 ms on the
// machines where the figures of docs/performance.md come from; the rest is room for those that are busy.
const mostP99 = 100 * time.Millisecond

// holdRules is what `hold --help` says of the command.
const holdRules = `
hold attacks three fresh members from hosts of 127.0.2.0/24, and watches what another client, of
127.0.3.1, gets. An attack fails, and with it the command, if
- a member takes more than --memory and 4 %, by which Go's runtime misses its limit, or ends;
- a put or a renewal of the other client fails, or is not answered within 5 s;
- the p99 of its puts is above --p99. A put begins every 20 ms, whether or not those before it are answered, and its time
  counts from when it was to begin, also if it fails. Where somebody else took more than 10% of the machine's cores
  meanwhile, as the column others tells, the p99 may be three times as large, and ten times where it was more than 40%;
- the attacker, a process of its own at the lowest priority, made no call;
- the members take more than 10 s until they answer a put after they were killed. All are, and are started again, after
  each attack that writes. Puts and renewals count for nothing from the kill to that answer, as no member is there to
  switch to; before it every one counts.
An attack may have a larger p99, more memory or failures. Then its row says why.
`

// held is what came of an attack.
type held struct {
	limit, peak, after float64 // MiB of the largest member
	fare               *fare
	start              time.Duration // from the kill of all members to an answer; zero: none was killed
	ended              string        // which member did, or why none answers
	group              float64       // MiB that its memory control group lets it take; zero: it has none
	attack             tally
	others             float64 // percent of the machine's cores that other programs took
}

// missed is by how much of the limit a peak may be above it: Go's runtime misses its own by some percent while large values
// come and go.
const missed = 0.04

// faults are the reasons for which an attack fails. No p99 is too much if mostWait is zero.
func (r *held) faults(h *holding, mostWait time.Duration) (all []string) {
	add := func(fails bool, format string, of ...any) {
		if fails {
			all = append(all, fmt.Sprintf(format, of...))
		}
	}
	add(r.ended != "", "%s", r.ended)
	add(r.peak > (1+missed)*r.limit+h.files, "the largest member took %.1f MiB of %.0f", r.peak, r.limit+h.files)
	if f := r.fare; !h.mayFail {
		add(f.failed > 0, "%d of %d puts of others failed: %v", f.failed, f.puts.Count(), f.said)
		add(f.unrenewed > 0, "%d of %d renewals of others failed: %v", f.unrenewed, f.renewals, f.said)
	}
	if wait := r.fare.puts.Quantile(0.99); mostWait > 0 {
		most := max(mostWait, h.p99) * r.room()
		add(wait > most, "the p99 of others' puts is %s, more than %s", wait.Round(shownTime), most)
	}
	add(r.attack.Calls == 0 && !h.none, "the attacker made no call: %s", r.attack.Said)
	add(r.fare.puts.Count() == 0 || r.fare.renewals == 0, "nothing of others was seen")
	add(r.start > mostStart, "killed members answered after %s, more than %s", r.start.Round(shownTime), mostStart)
	return all
}

// room is how many times as large a p99 may be as on a machine with no other user.
func (r *held) room() time.Duration {
	switch {
	case r.others > 40:
		return 10
	case r.others > 10:
		return 3
	default:
		return 1
	}
}

// shownTime is how exact a time is shown.
const shownTime = time.Millisecond / 10

// row is a row of the report.
func (r *held) row(name string, h *holding, faults []string) figures.Row {
	f := figures.NewRow(name)
	fared := r.fare
	f.Set(figures.ResidentMiB, r.peak)
	f.Set(figures.AfterMiB, r.after)
	f.Set(figures.Done, float64(fared.puts.Count()))
	f.Set(figures.MedianMillis, figures.Millis(fared.puts.Quantile(0.50)))
	f.Set(figures.P99Millis, figures.Millis(fared.puts.Quantile(0.99)))
	f.Set(figures.MaxMillis, figures.Millis(fared.puts.Longest()))
	f.Set(figures.Failures, float64(fared.failed))
	f.Set(figures.Renewals, float64(fared.renewals))
	f.Set(figures.Unrenewed, float64(fared.unrenewed))
	f.Set(figures.OthersPercent, r.others)
	f.Set(figures.Calls, float64(r.attack.Calls))
	f.Set(figures.CallsRefused, float64(r.attack.Refused))
	if r.start > 0 {
		f.Set(figures.WaitMillis, figures.Millis(r.start))
	}
	if r.group > 0 {
		f.Set(figures.GroupMiB, r.group)
	}
	switch {
	case len(faults) > 0:
		f.Note = "fails: " + strings.Join(faults, "; ")
	case h.because != "":
		f.Note = "allowed: " + h.because
	}
	return f
}
