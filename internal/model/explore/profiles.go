package explore

import (
	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/model"
)

// prepare draws the bounds, footprints and weights of a walk.
func (w *walker) prepare(r rules.Set, base *model.Scenario, prof profile) {
	sc := *base
	sc.Proposals = 2 + w.r.IntN(3)
	for p := range sc.Footprint {
		sc.Footprint[p] = pick[uint8](w, 1, 1, 1, 2, 2, 3)
	}
	if sc.Lies[0] != 0 {
		sc.Lies[0] = pick[uint8](w, 1, 2, 3)
	}
	sc.MaxTerm = int8(3 + w.r.IntN(model.MaxTerm-2))
	if sc.Recovers {
		sc.MaxTerm = min(sc.MaxTerm, model.MaxTerm-2)
	}
	sc.Crashes = int8(w.r.IntN(8))
	w.m = model.New(&sc, r)
	w.drop, w.lose = pick(w, 0, 5, 15, 30), 5
	w.plan = w.plan[:0]
	for k := range w.weight {
		w.weight[k] = pick(w, 0, 1, 3, 8)
	}
	w.weight[fastRound] += 4
	w.weight[election] += 2
	w.weight[replication] += 3
	w.weight[commits]++
	w.weight[applies]++
	for k := isolate; k < macros; k++ {
		w.weight[k] = w.r.IntN(2)
	}
	for _, k := range []macro{touch, settle, lossyRound, orphanRound, snapshots, handOver, hint, hintAll, inference} {
		w.weight[k] = w.r.IntN(3)
	}
	w.bound(&sc)
	w.aim(w.choose(&sc, prof))
}

// bound fits the weights of macros to the scenario: macros that it does not allow get zero.
func (w *walker) bound(sc *model.Scenario) {
	if len(sc.Configs) > 1 && !sc.Recovers {
		w.weight[changeOne]++
		w.weight[changeRound]++
	} else {
		w.weight[changeOne], w.weight[changeRound] = 0, 0
	}
	if sc.Patience[0] == 0 {
		w.weight[leaseRound], w.weight[ticks] = 0, 0
	}
	w.weight[surviveOne] = 0
	if sc.Recovers || sc.Disks {
		w.weight[surviveOne] = 1
	}
}

func (w *walker) choose(sc *model.Scenario, prof profile) profile {
	switch {
	case prof >= 0:
		return prof
	case sc.Recovers:
		return losing
	case sc.Disks:
		return diskless
	case sc.Patience[0] != 0:
		return leasing
	case len(sc.Configs) > 1 && w.chance(70):
		return pick(w, changes, rivals)
	}
	return profile(w.r.IntN(int(leasing)))
}

// some plans between low and high macros, drawn from choice.
func (w *walker) some(low, high int, choice ...macro) {
	for range low + w.r.IntN(high-low+1) {
		w.plan = append(w.plan, pick(w, choice...))
	}
}

func (w *walker) quiet(ks ...macro) {
	for _, k := range ks {
		w.weight[k] = 0
		if w.chance(30) {
			w.weight[k] = 1
		}
	}
}

func (w *walker) aim(prof profile) {
	switch prof {
	case churn:
		w.some(1, 3, fastRound)
		w.weight[election], w.weight[partial], w.weight[fastRound] = 12, 8+w.r.IntN(16), 3
		w.quiet(commits, applies, crashOne, crashAll, report, readStep, readRound, replication, settle, slowRound,
			lateAppend,
			changeOne, changeRound, finish, snapshots, handOver, inference)
		w.drop = pick(w, 0, 5, 10)
	case skipping:
		w.planSkips()
	case oldTerms:
		w.planOldTerms()
	case changes:
		w.some(0, 3, changeRound, fastRound)
		w.weight[changeRound], w.weight[election], w.weight[fastRound] = 5, 6, 8
		w.quiet(crashOne, crashAll, report, readStep, readRound, slowRound, snapshots, handOver)
	case rivals:
		w.planRivals()
	case reading:
		w.planRead()
		w.weight[readStep], w.weight[readRound], w.weight[fastRound], w.weight[applies] = 12, 6, 8, 4
		w.weight[inference] += 3
		w.weight[readBegins], w.weight[readEnds], w.weight[leaderRead] = w.r.IntN(4), w.r.IntN(6), w.r.IntN(3)
		w.weight[isolate], w.weight[heal] = w.r.IntN(3), w.r.IntN(3)
		w.weight[whisper], w.weight[ownAppend] = w.r.IntN(3), w.r.IntN(3)
	case foreignCommit:
		w.planForeignCommit()
	case leasing:
		w.planLease()
	case losing:
		w.some(1, 4, fastRound, lossyRound, settle, election, slowRound, orphanRound)
		w.quiet(report, snapshots, readStep, readRound)
		w.weight[surviveOne] = 6
	case diskless:
		w.some(1, 2, fastRound, slowRound)
		w.some(0, 2, partial, replication, election)
		w.some(1, 1, commits)
		w.some(0, 1, finish, crashOne)
		w.some(1, 1, surviveOne)
		w.some(1, 1, election)
		w.some(1, 1, settle)
		w.weight[surviveOne] = 3
		w.drop = pick(w, 0, 5, 15)
	}
}

func (w *walker) planSkips() {
	w.some(1, 1, orphanRound)
	w.some(1, 2, slowRound, fastRound)
	w.some(1, 1, settle)
	w.some(1, 1, election)
	w.some(1, 2, settle, replication, partial)
	w.some(1, 2, retryRound)
	w.some(0, 2, settle, partial)
	w.some(1, 2, election)
	w.some(1, 1, settle)
	w.lose = 30
	w.drop = pick(w, 0, 5, 10)
	w.weight[slowRound], w.weight[retryRound], w.weight[fastRound] = 6, 8, 6
	w.weight[applies], w.weight[commits], w.weight[election] = 6, 6, 5
	w.quiet(crashOne, crashAll, readStep, readRound, changeOne, changeRound, snapshots, handOver, report)
}

func (w *walker) planOldTerms() {
	w.some(1, 2, lossyRound)
	w.some(1, 1, election)
	w.some(1, 1, touch)
	w.some(1, 2, replication, partial)
	w.some(1, 1, commits)
	w.some(1, 3, fastRound)
	w.some(0, 2, replication, partial, touch)
	for range 1 + w.r.IntN(3) {
		w.some(1, 1, election)
		w.some(0, 2, partial)
	}
	w.some(1, 1, settle)
	w.drop = pick(w, 0, 5, 10)
	if w.chance(60) {
		for p := range w.m.Scenario.Footprint {
			w.m.Scenario.Footprint[p] = pick[uint8](w, 1, 1, 2)
		}
	}
}

func (w *walker) planRivals() {
	w.some(1, 1, changeRound)
	w.some(0, 1, fastRound)
	w.some(1, 1, election)
	w.some(0, 2, touch, replication)
	w.some(1, 1, changeRound)
	w.some(1, 2, fastRound)
	w.some(0, 1, partial, replication)
	w.some(1, 1, election)
	w.some(0, 1, changeRound)
	w.some(0, 1, fastRound)
	w.some(1, 1, settle)
	w.drop = pick(w, 0, 5, 15)
}

// planForeignCommit makes a follower that still follows a deposed leader learn the commit index of a later leader, from the
// pre-vote of a former leader, and read meanwhile. The shape is that of a stale read that a review found by reading: no walk
// without this plan had reached it.
func (w *walker) planForeignCommit() {
	w.some(1, 3, slowRound)
	w.some(1, 1, partial)
	w.some(1, 2, fastRound)
	w.some(1, 1, election)
	w.some(0, 1, touch, partial)
	w.some(1, 1, readBegins)
	w.some(1, 1, isolate)
	w.some(1, 1, comeback, comeback, election)
	w.some(1, 2, replication)
	w.some(0, 1, partial, commits)
	w.some(1, 3, crashOne, tellPart)
	w.some(1, 1, whisper)
	w.some(1, 2, readEnds, ownAppend)
	w.lose = 5
	w.drop = pick(w, 0, 0, 5)
	w.weight[hint], w.weight[hintAll], w.weight[readBegins], w.weight[readEnds] = 4, 4, 4, 4
	w.weight[isolate], w.weight[heal], w.weight[whisper], w.weight[ownAppend] = 2, 2, 4, 4
	w.weight[election], w.weight[replication], w.weight[partial], w.weight[touch] = 6, 5, 4, 3
	w.weight[crashOne] = 3
	w.quiet(crashAll, snapshots, handOver, report, changeOne, changeRound, lateAppend)
	w.m.Scenario.Crashes = 3
	if w.chance(70) {
		w.m.Scenario.Proposals = model.MaxProposals
		w.m.Scenario.Footprint = [model.MaxProposals]uint8{1, 2, 1, 2}
	}
}

// planLease makes a leader keep its lease while another one is elected, and both serve.
func (w *walker) planLease() {
	w.some(1, 1, fastRound, slowRound)
	w.some(1, 1, settle)
	w.some(1, 2, leaseRound)
	w.some(0, 1, ticks)
	w.some(0, 1, crashOne, crashAll)
	w.some(1, 1, isolate)
	w.some(1, 1, election, handOver)
	w.some(1, 1, settle)
	w.some(1, 2, fastRound, slowRound)
	w.some(0, 1, settle)
	w.some(1, 2, leaderRead)
	w.drop = pick(w, 0, 5, 10)
	w.weight[leaseRound], w.weight[ticks], w.weight[leaderRead], w.weight[readRound] = 8, 4, 6, 2
	w.weight[election], w.weight[fastRound], w.weight[crashOne], w.weight[handOver] = 8, 5, 2, 3
	w.weight[isolate], w.weight[heal] = 3, 2
	w.quiet(report, snapshots, orphanRound, crashAll)
}

// planRead makes a read wait while leaders change.
func (w *walker) planRead() {
	if w.chance(50) {
		return
	}
	w.some(0, 1, orphanRound)
	w.some(1, 2, fastRound, lossyRound)
	w.some(1, 1, readBegins)
	w.some(1, 1, election)
	w.some(1, 2, settle, replication)
	w.some(0, 1, tellPart, commits)
	w.some(1, 3, readEnds, tellPart)
	w.drop = pick(w, 0, 0, 5)
}
