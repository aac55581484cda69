package raft_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus/raft"
)

// fastFault is a rule of the fast path that is switched off, and how that is noticed: by walks, or by a turn of events for
// which walks would have to be many.
type fastFault struct {
	name   string
	set    func(f *raft.FastFaults)
	shell  shellFaults
	aim    aim
	turn   func(x *turn)
	voters int // of the turn
}

// fastFaults is the table. AnyConfig breaks nothing by itself: what the log claims of a configuration entry meets every command,
// until the entry is applied.
var fastFaults = []fastFault{
	{name: "answers of other terms are added up", set: func(f *raft.FastFaults) { f.MixAnswers = true }, turn: mixed, voters: 5},
	{name: "any configuration will do", set: func(f *raft.FastFaults) { f.AnyConfig, f.NoLogFootprint = true, true }, turn: changing, voters: 4},
	{name: "voter: keys held", set: func(f *raft.FastFaults) { f.NoPoolFootprint = true }, turn: keysHeld, voters: 3},
	{name: "keys logged", set: func(f *raft.FastFaults) { f.NoLogFootprint = true }},
	{name: "voter: order held", set: func(f *raft.FastFaults) { f.NoPoolOrder = true }},
	{name: "voter: order logged", set: func(f *raft.FastFaults) { f.NoLogOrder = true }, turn: orderLogged, voters: 4},
	{name: "record answered before durable", set: func(f *raft.FastFaults) { f.RecordTooSoon = true }, turn: recordLost, voters: 3},
	{name: "leader: order logged", set: func(f *raft.FastFaults) { f.NoLeaderOrder = true }},
	{name: "leader: order held", set: func(f *raft.FastFaults) { f.NoLeaderPoolOrder = true }, turn: leaderPoolOrder, voters: 4},
	{name: "leader: keys held", set: func(f *raft.FastFaults) { f.NoLeaderPoolFootprint = true }, turn: leaderPoolKeys, voters: 4},
	{name: "leader: known proposals", set: func(f *raft.FastFaults) { f.NoDedup = true }, turn: known, voters: 3},
	{name: "open before the no-op commits", set: func(f *raft.FastFaults) { f.OpenTooSoon = true }, turn: openTooSoon, voters: 4},
	{name: "votes carry nothing", set: func(f *raft.FastFaults) { f.VoteWithout = true }},
	{name: "votes carry no own answers", set: func(f *raft.FastFaults) { f.VoteWithoutOwn = true }, turn: func(x *turn) { ownAnswer(x, false) }, voters: 3},
	{name: "truncation forgets", set: func(f *raft.FastFaults) { f.TruncationForgets = true }, turn: func(x *turn) { ownAnswer(x, true) }, voters: 3},
	{name: "passed over takes all attempts", set: func(f *raft.FastFaults) { f.SkipForgetsAll = true }, turn: passedOverForgets, voters: 4},
	{name: "own log searched by proposal", set: func(f *raft.FastFaults) { f.LoggedByID = true }, turn: passedOverLogged, voters: 4},
	{name: "holders counted by proposal", set: func(f *raft.FastFaults) { f.HoldersByID = true }, turn: otherAttempts, voters: 4},
	{name: "recovery: one holder more", set: func(f *raft.FastFaults) { f.RecoverMore = 1 }},
	{name: "recovery: one holder less", set: func(f *raft.FastFaults) { f.RecoverLess = 1 }, turn: tooFew, voters: 5},
	{name: "recovery: descending", set: func(f *raft.FastFaults) { f.RecoverDescending = true }},
	{name: "reads past the pool", set: func(f *raft.FastFaults) { f.ReadPastPool = true }, aim: aim{profile: reading}},
	{name: "read index is the commit index", set: func(f *raft.FastFaults) { f.CommitAsReadIndex = true }, aim: aim{profile: reading}},
	{name: "any revision counts", set: func(f *raft.FastFaults) { f.Tally.CountAnyRevision = true }},
	{name: "superquorum one less", set: func(f *raft.FastFaults) { f.Tally.OneLess = true }},
	{name: "apply: a second entry", shell: shellFaults{noDedup: true}},
	{name: "apply: the next revision", shell: shellFaults{skipBumps: true}, turn: bumped, voters: 3},
	{name: "apply: at a revision that is taken", shell: shellFaults{skipApplies: true}},
	{name: "apply: passed over is a result", shell: shellFaults{skipIsResult: true}},
	{name: "reply evaluated late", shell: shellFaults{lateReply: true}, turn: lateReply, voters: 3},
	{name: "leader answers before durable", shell: shellFaults{replyTooSoon: true}, turn: replyLost, voters: 3},
	{name: "record forgotten at append", shell: shellFaults{forgetAtAppend: true}, turn: forgottenAtAppend, voters: 5},
}

// Ensure that each rule of the fast path is needed, and that the laws notice: with the rule switched off a turn of events breaks
// one, and with the rule on it does not; or some walk does. FAST_FAULT=name searches for a fault among FAST_RUNS walks, too.
func TestReplica_Step_fastFaults(t *testing.T) {
	search, limit := os.Getenv("FAST_FAULT"), uint64(1500)
	if s := os.Getenv("FAST_RUNS"); s != "" {
		limit, _ = strconv.ParseUint(s, 10, 64)
	}
	for i := range fastFaults {
		f := &fastFaults[i]
		if !strings.Contains(f.name, search) {
			continue
		}
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			if f.turn != nil {
				if law := play(t, f, false); law != "" {
					t.Errorf("%s: the turn breaks %s with all rules on", f.name, law)
				}
				law := play(t, f, true)
				if !strings.HasPrefix(law, "L") {
					t.Errorf("%s: the turn breaks %q", f.name, law)
				}
				t.Logf("%-42s turn, %d voters: %s", f.name, f.voters, law)
			}
			if f.turn == nil || search != "" {
				f.find(t, limit)
			}
		})
	}
}

func (f *fastFault) find(t *testing.T, limit uint64) {
	a := f.aim
	a.shell = f.shell
	if f.set != nil {
		a.adapt = func(o *raft.Options) { f.set(&o.Faults.Fast) }
	}
	begin := time.Now()
	for seed := uint64(1); seed <= limit; seed++ {
		x := newWalk(seed, a)
		if err := x.run(60, false); err != nil {
			t.Logf("%-42s seed %4d, %d members, %d messages, %.1fs: %v", f.name, seed, len(x.nodes), x.delivered, time.Since(begin).Seconds(), err)
			if os.Getenv("FAST_FAULT") != "" {
				t.Log(replay(seed, a, 60, 4000, false))
			}
			return
		}
	}
	t.Errorf("%s: %d walks broke no law, %.1fs", f.name, limit, time.Since(begin).Seconds())
}
