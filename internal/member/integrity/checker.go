package integrity

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
)

// Pace says how often a leader compares the members. Zero means never.
type Pace struct {
	Chains   time.Duration // the hash over all that was applied: costs a small request to each member
	Contents time.Duration // the hash over all that is stored: each member reads its whole store
}

// Kind is what is compared. It is also the name of the request on the wire.
type Kind string

// The kinds.
const (
	Chain    Kind = "integrity.chain"
	Contents Kind = "integrity.contents"
)

const (
	// chainTimeout bounds one comparison of chains.
	chainTimeout = 5 * time.Second
	// contentsTimeout bounds the reading of a whole store.
	contentsTimeout = 10 * time.Minute
	// startPatience is how long a start waits for a leader before it goes on without a comparison.
	startPatience = 10 * time.Second
)

// Question asks for the chain at an index, or for the hash of the contents at a revision.
type Question struct {
	At uint64 `json:"at"`
}

// Answer is what a member says about its state.
type Answer struct {
	Known bool   `json:"known"` // if not, the member does not remember that index, or has not this revision
	Base  uint64 `json:"base"`
	At    uint64 `json:"at"`
	Sum   uint64 `json:"sum"`
}

// Ports are what a Checker needs of the member that it works for.
type Ports struct {
	Leads     func() bool
	Config    func() consensus.Config // applied here
	ReadIndex func(ctx context.Context) error
	Propose   func(ctx context.Context, command *kv.Command) (kv.Result, error)
	// Ask takes a question to a member, this one too. An error counts as no answer.
	Ask func(ctx context.Context, id consensus.MemberID, kind Kind, q Question) (Answer, error)
	// Spare tells the core which members alarms name, so that others lead if they can.
	Spare func(members []consensus.MemberID)
}

// Options belong to the member of a Checker.
type Options struct {
	Self   consensus.MemberID
	Stores *datadir.Stores
	Pace   Pace
	Ports  Ports
	Logger *slog.Logger
}

// Checker compares the members while this one leads, answers when another one compares, and knows whether this member
// is marked corrupt.
type Checker struct {
	options   Options
	marked    atomic.Bool
	compared  atomic.Uint64
	different atomic.Uint64
	reading   sync.Mutex           // of all contents: one at a time
	spared    []consensus.MemberID // as the core was told last
}

// New returns a Checker that has read the present alarms.
func New(options Options) *Checker {
	c := &Checker{options: options}
	c.Note()
	return c
}

// Counts are the comparisons that this member made as a leader, and how many found a difference.
type Counts struct{ Compared, Different uint64 }

// Counts returns them.
func (c *Checker) Counts() Counts {
	return Counts{Compared: c.compared.Load(), Different: c.different.Load()}
}

// Marked reports whether an alarm names this member, or no member in particular. Then it must not answer from its state.
func (c *Checker) Marked() bool { return c.marked.Load() }

// Note reads the alarms. It must be called whenever they may have changed.
func (c *Checker) Note() {
	machine, release := c.options.Stores.Machine()
	alarms, at := machine.Alarms(), machine.Applied().Index
	release()
	if corrupt, _ := CorruptMembers(alarms); !slices.Equal(corrupt, c.spared) {
		c.spared = corrupt
		c.options.Ports.Spare(corrupt)
	}
	marked := Marked(alarms, c.options.Self)
	if c.marked.Swap(marked) == marked {
		return
	}
	if marked {
		c.options.Logger.Error("marked corrupt: this member serves nothing any more; what to do is in docs/compatibility.md, "+
			"CORRUPT", "member", c.options.Self.String(), "index", uint64(at))
	} else {
		c.options.Logger.Info("no longer marked corrupt: this member serves again", "member", c.options.Self.String())
	}
}

// Run compares the members while this one leads, until ctx ends.
func (c *Checker) Run(ctx context.Context) error {
	chains, contents := every(c.options.Pace.Chains), every(c.options.Pace.Contents)
	defer chains.Stop()
	defer contents.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-chains.C:
			if c.options.Ports.Leads() {
				c.compare(ctx, chainTimeout, c.sampleChains)
			}
		case <-contents.C:
			if c.options.Ports.Leads() {
				c.compare(ctx, contentsTimeout, c.sampleContents)
			}
		}
	}
}

// ErrDiffers means that this member stores something else than the others do.
var ErrDiffers = errors.New("what this member stores differs from what others do")

// CompareAtStart compares all that this member stores with what the others do, once it has applied what they have, and
// returns ErrDiffers if it must not serve. Members that do not answer are not waited for: after all were stopped no member
// could start then.
func (c *Checker) CompareAtStart(ctx context.Context) error {
	patience, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := c.options.Ports.ReadIndex(patience); err != nil {
		c.options.Logger.Warn("could not compare what this member stores with others before it serves", "err", err)
		return nil
	}
	ctx, cancel = context.WithTimeout(ctx, contentsTimeout)
	defer cancel()
	config := c.options.Ports.Config()
	samples := c.sampleContents(ctx, memberIDs(&config))
	if v := Judge(config.Voters, samples); v.Undecided || slices.Contains(v.Corrupt, c.options.Self) {
		return ErrDiffers
	}
	c.options.Logger.Info("compared what this member stores with others before it serves", "members", len(samples))
	return nil
}

func memberIDs(config *consensus.Config) []consensus.MemberID {
	members := make([]consensus.MemberID, 0, len(config.Members))
	for i := range config.Members {
		members = append(members, config.Members[i].ID)
	}
	return members
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

// compare makes one round, and raises an alarm for each member that differs.
func (c *Checker) compare(
	ctx context.Context, timeout time.Duration, sample func(context.Context, []consensus.MemberID) []Sample,
) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	config := c.options.Ports.Config()
	v := Judge(config.Voters, sample(ctx, memberIDs(&config)))
	c.compared.Add(1)
	if len(v.Corrupt) == 0 && !v.Undecided {
		return
	}
	c.different.Add(1)
	if v.Undecided {
		v.Corrupt = []consensus.MemberID{consensus.NoMember} // no member in particular: all stop
	}
	for _, id := range v.Corrupt {
		c.raiseAlarm(ctx, id)
	}
}

func (c *Checker) raiseAlarm(ctx context.Context, id consensus.MemberID) {
	machine, release := c.options.Stores.Machine()
	known := slices.Contains(machine.Alarms(), kv.Alarm{Member: uint64(id), Kind: kv.AlarmCorrupt})
	release()
	if known {
		return
	}
	if id == consensus.NoMember {
		c.options.Logger.Error("members differ at the same place, and no majority tells who is right: all stop serving; " +
			"what to do is in docs/compatibility.md, CORRUPT")
	} else {
		c.options.Logger.Error("a member differs from the majority at the same place: it stops serving, the others go on; "+
			"what to do is in docs/compatibility.md, CORRUPT", "peer", id.String())
	}
	command := kv.Command{Alarm: &kv.AlarmOp{Activate: true, Member: uint64(id), Kind: kv.AlarmCorrupt},
		By: c.options.Stores.Latest().Users().ByMember()}
	result, err := c.options.Ports.Propose(ctx, &command)
	if err = errors.Join(err, result.Err); err != nil {
		c.options.Logger.Warn("could not mark a corrupt member, the next comparison will", "peer", id.String(), "err", err)
	}
}

// sampleChains asks the members for their chains at one index that all of them remember: first at the index of the
// leader, then at the lowest one that a member answered for, which may be too old for others to remember, then once more.
func (c *Checker) sampleChains(ctx context.Context, members []consensus.MemberID) []Sample {
	at := c.chain(^uint64(0)).At
	var samples []Sample
	for range 3 {
		samples = c.askAll(ctx, members, Chain, at)
		next := lowest(at, samples)
		if next == at {
			break
		}
		at = next
	}
	return samples
}

// sampleContents asks the members for the hash of their contents at the leader's revision.
func (c *Checker) sampleContents(ctx context.Context, members []consensus.MemberID) []Sample {
	machine, release := c.options.Stores.Machine()
	revision := machine.Store().Revision()
	release()
	return c.askAll(ctx, members, Contents, uint64(revision))
}

// askAll asks all members at once, this one too, and returns who knew, in the order of members.
func (c *Checker) askAll(ctx context.Context, members []consensus.MemberID, kind Kind, at uint64) []Sample {
	answers := make([]Answer, len(members))
	var asked sync.WaitGroup
	for i, id := range members {
		asked.Go(func() {
			if answer, err := c.options.Ports.Ask(ctx, id, kind, Question{At: at}); err == nil {
				answers[i] = answer
			}
		})
	}
	asked.Wait()
	var samples []Sample
	for i, a := range answers {
		if a.Known {
			samples = append(samples, Sample{Member: members[i], Base: a.Base, At: a.At, Sum: a.Sum})
		}
	}
	return samples
}

// Answer says what this member's state hashes to.
func (c *Checker) Answer(ctx context.Context, kind Kind, q Question) Answer {
	if kind == Chain {
		return c.chain(q.At)
	}
	return c.contents(ctx, q.At)
}

func (c *Checker) chain(at uint64) Answer {
	machine, release := c.options.Stores.Machine()
	defer release()
	mark, known := machine.ChainAt(consensus.Index(at))
	return Answer{Known: known, Base: uint64(mark.Since), At: uint64(mark.Index), Sum: mark.Sum}
}

// contents reads the whole store. It waits until this member has applied what the one that asks had.
func (c *Checker) contents(ctx context.Context, revision uint64) Answer {
	if !c.reading.TryLock() {
		return Answer{}
	}
	defer c.reading.Unlock()
	if err := c.options.Ports.ReadIndex(ctx); err != nil {
		return Answer{}
	}
	machine, release := c.options.Stores.Machine()
	defer release()
	hash, compacted, _, err := machine.Store().HashKV(kv.Revision(revision))
	if err != nil {
		return Answer{}
	}
	return Answer{Known: true, Base: uint64(compacted), At: revision, Sum: uint64(hash)}
}
