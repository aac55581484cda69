package observe

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

const (
	judgePause = 15 * time.Second // between two verdicts
	// window is what the rates of an observation are of.
	window = time.Minute
	// settling is for how many election timeouts after the start a member applies what its log has, and what it missed: no
	// window has that, once another one can be had. Package doctor knows the number, too.
	settling = 10
)

// Observer remembers what the member counted lately, and judges it now and then.
type Observer struct {
	o     Options
	begun time.Time

	mu         sync.Mutex
	tallies    []tallies // of history, oldest first
	leaderless time.Time // since when no leader is known; zero: one is
	files      uint64    // open at the last verdict: a process may have very many, and counting them takes time
	resident   int64
	busiest    int64 // see Options.Busiest: anybody may ask for an observation, and to rank prefixes takes time, too
	findings   []doctor.Finding
	judged     time.Time // when they were found; zero: not yet
}

// New returns the observer of a member that was just started.
func New(o Options) *Observer { return &Observer{o: o, begun: time.Now()} }

// Run tallies and judges until ctx ends.
func (w *Observer) Run(ctx context.Context) {
	tally, judge := time.NewTicker(tallyPause), time.NewTicker(judgePause)
	defer tally.Stop()
	defer judge.Stop()
	w.remember()
	w.measure()
	for {
		changed := w.o.Member.LeaderChanged()
		w.noteLeader()
		select {
		case <-tally.C:
			w.remember()
		case <-judge.C:
			w.measure()
			w.judge(ctx)
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// noteLeader notes since when there is no leader.
func (w *Observer) noteLeader() {
	led := w.o.Member.Leader() != consensus.NoMember
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case led:
		w.leaderless = time.Time{}
	case w.leaderless.IsZero():
		w.leaderless = time.Now()
	}
}

// remember adds a tally, and forgets those that no window needs.
func (w *Observer) remember() {
	now := w.o.tally(time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tallies = append(w.tallies, now)
	for len(w.tallies) > 1 && now.at.Sub(w.tallies[1].at) >= history {
		w.tallies = w.tallies[1:]
	}
}

func (w *Observer) measure() {
	files, resident, busiest := filesOpen(), residentBytes(), w.o.Busiest()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files, w.resident, w.busiest = files, resident, busiest
}

// before returns the tallies with which the window and the history begin.
func (w *Observer) before(now time.Time) (recent, long tallies, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tallies) == 0 {
		return recent, long, false
	}
	starts := w.begun.Add(settling * w.o.Config.Consensus.ElectionTimeout)
	return windowBegins(w.tallies, starts, now), w.tallies[0], true
}

// windowBegins is the tally with which the window begins that ends now: of a minute ago, if the process has settled by then;
// else the first one since it has, once that says anything; else the first one.
func windowBegins(all []tallies, settled, now time.Time) tallies {
	recent := all[0]
	for i := range all {
		age, at := now.Sub(all[i].at), all[i].at
		if age >= window || age >= tallyPause && recent.at.Before(settled) && !at.Before(settled) {
			recent = all[i]
		}
	}
	return recent
}

// leastBehind is how many watchers were behind at each tally of the window, and now.
func (w *Observer) leastBehind(now *tallies) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	least := now.behind
	for i := range w.tallies {
		if now.at.Sub(w.tallies[i].at) < window {
			least = min(least, w.tallies[i].behind)
		}
	}
	return int64(least)
}

// judge finds what is wrong by what this member knows alone.
func (w *Observer) judge(ctx context.Context) {
	o := w.Observe(ctx, false)
	found := doctor.Judge(&quoratepb.Collected{Alone: true, AtMs: o.NowMs, Members: []*quoratepb.CollectedMember{{
		Id: o.MemberId, Name: o.Name, AskedMs: o.NowMs, Observation: o,
	}}})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.findings, w.judged = found, time.Now()
}

// verdictLasts is for how long a verdict is one: an observer that hangs has none.
const verdictLasts = 3 * judgePause

// Verdict returns the worst finding above advice that a build may be the cause of, and whether this member has judged itself
// lately.
func (w *Observer) Verdict() (judged bool, worst string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return verdictOf(w.findings, w.judged, time.Now())
}

func verdictOf(findings []doctor.Finding, at, now time.Time) (judged bool, worst string) {
	if at.IsZero() || now.Sub(at) > verdictLasts {
		return false, ""
	}
	for i := range findings { // causes are first, the worst before the others
		if f := &findings[i]; f.Severity < doctor.Advice && doctor.OfBuild(f.Code) {
			return true, string(f.Code) + ": " + f.Sentence
		}
	}
	return true, ""
}

// Collect shows the findings of the last verdict. A code that is not found is zero.
func (w *Observer) Collect(e *metrics.Emitter) {
	w.mu.Lock()
	found := w.findings
	w.mu.Unlock()
	show := func(code doctor.Code, severity string, members int) {
		e.Gauge("quorate_doctor_findings",
			"How many members a finding is about, by code and severity, of what this member knows alone: see docs/doctor.md.",
			float64(members), "code", string(code), "severity", severity)
	}
	// Several findings may have code and severity in common: they are one series, of the members of all.
	seen, members := map[string]bool{}, map[string][]string{}
	key := func(f *doctor.Finding) string { return string(f.Code) + strconv.Itoa(int(f.Severity)) }
	for i := range found {
		members[key(&found[i])] = append(members[key(&found[i])], found[i].Members...)
	}
	for i := range found {
		if f := &found[i]; !seen[key(f)] {
			seen[key(f)] = true
			names := slices.Compact(slices.Sorted(slices.Values(members[key(f)])))
			show(f.Code, strconv.Itoa(int(f.Severity)), max(1, len(names)))
		}
	}
	for _, row := range doctor.Codes() { // zero from the start: an alert on a series that is not there says nothing
		if worst := row.Impact[:1]; !seen[string(row.Code)+worst] {
			show(row.Code, worst, 0)
		}
	}
}

// Observe tells what this member knows at this moment of itself and its peers, and what it counted in the last ten minutes if
// the series is wanted.
func (w *Observer) Observe(ctx context.Context, series bool) *quoratepb.Observation {
	now := time.Now()
	o := w.o.observation(ctx, now)
	o.UpMs = now.Sub(w.begun).Milliseconds()
	w.mu.Lock()
	o.Process.OpenFiles, o.Process.MemoryBytes, o.Work.BusiestPercent = w.files, w.resident, w.busiest
	if !w.leaderless.IsZero() {
		o.Core.LeaderlessMs = max(1, now.Sub(w.leaderless).Milliseconds())
	}
	w.mu.Unlock()
	fresh := w.o.tally(now)
	if recent, long, known := w.before(now); known {
		fillWindow(o, &recent, &fresh)
		fillHistory(o, &long, &fresh)
	}
	o.Work.WatchersBehindLeast = w.leastBehind(&fresh)
	o.Work.PendingProposals = fresh.services.Pending
	o.Encryption = w.o.Encryption()
	if series {
		o.Series = w.series(now)
	}
	return o
}

// series is what was counted between tallies, oldest first.
func (w *Observer) series(now time.Time) []*quoratepb.ObservedPoint {
	w.mu.Lock()
	all := w.tallies // which are not changed once they are there
	w.mu.Unlock()
	return seriesOf(all, now)
}
