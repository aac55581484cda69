package member

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
)

// IntegrityPace says how often a leader compares what the members hold. Zero is never.
type IntegrityPace struct {
	Chains   time.Duration // the hash over all that was applied: costs a small request to each member
	Contents time.Duration // the hash over all that is stored: each member reads its whole store
}

// Methods of the requests by which members are compared.
const (
	methodChain    = "integrity.chain"
	methodContents = "integrity.contents"
)

const (
	// integrityPatience bounds one comparison of chains.
	integrityPatience = 5 * time.Second
	// contentsPatience bounds the reading of a whole store.
	contentsPatience = 10 * time.Minute
)

// integrityQuestion asks for the chain at an index, or for the hash of the contents at a revision.
type integrityQuestion struct {
	At uint64 `json:"at"`
}

type integrityAnswer struct {
	Known bool   `json:"known"` // if not, the member does not remember that index, or has not this revision
	Base  uint64 `json:"base"`
	At    uint64 `json:"at"`
	Sum   uint64 `json:"sum"`
}

// integrity is what a member knows about whether its state is that of the others.
type integrity struct {
	marked    atomic.Bool   // by an alarm: this member, or nobody knows which
	compared  atomic.Uint64 // rounds, as a leader
	different atomic.Uint64 // rounds that found a difference
	reading   sync.Mutex    // of all contents: one at a time
	spared    []consensus.MemberID
}

// IntegrityCounts are the comparisons that this member made as a leader, and how many found a difference.
type IntegrityCounts struct{ Compared, Different uint64 }

// IntegrityCounts returns them.
func (m *Member) IntegrityCounts() IntegrityCounts {
	return IntegrityCounts{Compared: m.integrity.compared.Load(), Different: m.integrity.different.Load()}
}

// Corrupt reports whether an alarm says that what this member holds is wrong, or that nobody knows who is right. It must
// not answer from its state then.
func (m *Member) Corrupt() bool { return m.integrity.marked.Load() }

// MarkedCorrupt reports whether alarms speak of a member so, or of nobody in particular.
func MarkedCorrupt(alarms []kv.Alarm, id consensus.MemberID) bool {
	return slices.ContainsFunc(alarms, func(a kv.Alarm) bool {
		return a.Kind == kv.AlarmCorrupt && (a.Member == 0 || consensus.MemberID(a.Member) == id)
	})
}

// noteIntegrity looks at the alarms after they may have changed. It runs in the goroutine that applies.
func (m *Member) noteIntegrity() {
	machine, release := m.Machine()
	alarms := machine.Alarms()
	marked, at := MarkedCorrupt(alarms, m.ID()), machine.Applied().Index
	release()
	m.spareCorrupt(alarms)
	if m.integrity.marked.Swap(marked) == marked {
		return
	}
	if marked {
		m.logger.Error("marked corrupt: this member serves nothing any more; what to do is in docs/compatibility.md, CORRUPT",
			"member", m.ID().String(), "index", uint64(at))
	} else {
		m.logger.Info("no longer marked corrupt: this member serves again", "member", m.ID().String())
	}
}

// spareCorrupt tells the core, if it has changed, which members have the alarm: leadership goes to others. The log of a corrupt
// member is as good as any, so that it votes and acknowledges, and may lead if nobody else can: without its entries a cluster
// could lose a write that was acknowledged. It hands over as soon as somebody has caught up.
func (m *Member) spareCorrupt(alarms []kv.Alarm) {
	var corrupt []consensus.MemberID
	for _, a := range alarms {
		if a.Kind == kv.AlarmCorrupt && a.Member != 0 {
			corrupt = append(corrupt, consensus.MemberID(a.Member))
		}
	}
	if !slices.Equal(corrupt, m.integrity.spared) {
		m.integrity.spared = corrupt
		m.inbox.put(raft.Spare{Members: corrupt})
	}
}

// compareMembers is the goroutine that, on the leader, compares the members.
func (m *Member) compareMembers() error {
	chains, contents := every(m.options.Integrity.Chains), every(m.options.Integrity.Contents)
	defer chains.Stop()
	defer contents.Stop()
	for {
		select {
		case <-m.stopping.Done():
			return nil
		case <-chains.C:
			if m.Leader() == m.ID() {
				m.compare(integrityPatience, m.sampleChains)
			}
		case <-contents.C:
			if m.Leader() == m.ID() {
				m.compare(contentsPatience, m.sampleContents)
			}
		}
	}
}

// every is a ticker that may never tick.
func every(d time.Duration) *time.Ticker {
	if d > 0 {
		return time.NewTicker(d)
	}
	never := time.NewTicker(time.Hour)
	never.Stop()
	return never
}

// compare makes one round, and raises an alarm for whoever differs.
func (m *Member) compare(patience time.Duration, take func(context.Context, []consensus.MemberID) []stateSample) {
	ctx, cancel := context.WithTimeout(m.stopping, patience)
	defer cancel()
	config, _ := m.configApplied()
	members := make([]consensus.MemberID, 0, len(config.Members))
	for i := range config.Members {
		members = append(members, config.Members[i].ID)
	}
	v := judge(config.Voters, take(ctx, members))
	m.integrity.compared.Add(1)
	if len(v.corrupt) == 0 && !v.undecided {
		return
	}
	m.integrity.different.Add(1)
	if v.undecided {
		v.corrupt = []consensus.MemberID{consensus.NoMember} // nobody in particular: all stop
	}
	for _, id := range v.corrupt {
		m.markCorrupt(ctx, id)
	}
}

func (m *Member) markCorrupt(ctx context.Context, id consensus.MemberID) {
	machine, release := m.Machine()
	known := slices.Contains(machine.Alarms(), kv.Alarm{Member: uint64(id), Kind: kv.AlarmCorrupt})
	release()
	if known {
		return
	}
	if id == consensus.NoMember {
		m.logger.Error("members differ at the same place, and no majority tells who is right: all stop serving; " +
			"what to do is in docs/compatibility.md, CORRUPT")
	} else {
		m.logger.Error("a member differs from the majority at the same place: it stops serving, the others go on; "+
			"what to do is in docs/compatibility.md, CORRUPT", "peer", id.String())
	}
	command := kv.Command{Alarm: &kv.AlarmOp{Activate: true, Member: uint64(id), Kind: kv.AlarmCorrupt}}
	result, err := m.Propose(ctx, &command)
	if err = errors.Join(err, result.Err); err != nil {
		m.logger.Warn("could not mark a corrupt member, the next comparison will", "peer", id.String(), "err", err)
	}
}

// sampleChains asks the members for their chains at one index that all of them remember.
func (m *Member) sampleChains(ctx context.Context, members []consensus.MemberID) []stateSample {
	at := uint64(m.chainHere(^uint64(0)).At)
	var samples []stateSample
	for range 3 { // the index of the leader, the lowest applied one, and a multiple of the stride below that
		samples = m.askAll(ctx, members, methodChain, at)
		lowest := at
		for _, s := range samples {
			lowest = min(lowest, s.At)
		}
		if lowest == at {
			break
		}
		at = lowest
	}
	return samples
}

// sampleContents asks the members for the hash of their contents at the leader's revision.
func (m *Member) sampleContents(ctx context.Context, members []consensus.MemberID) []stateSample {
	machine, release := m.Machine()
	revision := machine.Store().Revision()
	release()
	return m.askAll(ctx, members, methodContents, uint64(revision))
}

// askAll asks all members at once, this one too, and returns who knew, in the order of members.
func (m *Member) askAll(ctx context.Context, members []consensus.MemberID, method string, at uint64) []stateSample {
	body, err := json.Marshal(integrityQuestion{At: at})
	if err != nil {
		return nil
	}
	answers := make([]integrityAnswer, len(members))
	var asked sync.WaitGroup
	for i, id := range members {
		asked.Go(func() {
			raw, err := m.askLeader(ctx, id, method, body)
			if err == nil {
				answers[i], _ = openReply[integrityAnswer](raw) // unknown, if it does not decode
			}
		})
	}
	asked.Wait()
	var samples []stateSample
	for i, a := range answers {
		if a.Known {
			samples = append(samples, stateSample{Member: members[i], Base: a.Base, At: a.At, Sum: a.Sum})
		}
	}
	return samples
}

// integrityCall answers the methods of this file, nil for others.
func (m *Member) integrityCall(method string) func(context.Context, integrityQuestion) integrityAnswer {
	switch method {
	case methodChain:
		return func(_ context.Context, q integrityQuestion) integrityAnswer { return m.chainHere(q.At) }
	case methodContents:
		return m.contentsHere
	}
	return nil
}

func (m *Member) chainHere(at uint64) integrityAnswer {
	machine, release := m.Machine()
	defer release()
	mark, known := machine.ChainAt(consensus.Index(at))
	return integrityAnswer{Known: known, Base: uint64(mark.Since), At: uint64(mark.Index), Sum: mark.Sum}
}

// contentsHere reads the whole store. It waits until this member has applied what the one that asks had.
func (m *Member) contentsHere(ctx context.Context, q integrityQuestion) integrityAnswer {
	if !m.integrity.reading.TryLock() {
		return integrityAnswer{}
	}
	defer m.integrity.reading.Unlock()
	if err := m.ReadIndex(ctx); err != nil {
		return integrityAnswer{}
	}
	machine, release := m.Machine()
	defer release()
	hash, compacted, _, err := machine.Store().HashKV(kv.Revision(q.At))
	if err != nil {
		return integrityAnswer{}
	}
	return integrityAnswer{Known: true, Base: uint64(compacted), At: q.At, Sum: uint64(hash)}
}
