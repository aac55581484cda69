package prover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/backup/attempt"
	"github.com/quorate/quorate/internal/backup/prove"
	"github.com/quorate/quorate/internal/backup/survey"
	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/pace"
)

// Options are what a Prover works on.
type Options struct {
	Cluster consensus.ClusterID
	Epoch   uint64 // of the cluster
	Member  consensus.MemberID
	// Row returns the row of the backup, as this member has applied it.
	Row func() *kv.BackupRow
	// Propose replicates a command.
	Propose func(ctx context.Context, command *kv.Command) (kv.Result, error)
	// Open opens a place; close frees it.
	Open func(url string) (store objects.Store, close func(), err error)
	FS   env.FS
	Dir  string // scratch; what is there is removed
	// OpenEngine opens a store, which calls fatal where it cannot go on (engine.Options.OnFatal). That call does not return.
	OpenEngine func(dir string, fatal func(error)) (engine.Engine, error)
	Apply      apply.Options
	// Room says why there is no room for so many more bytes on the disk; nil: there is. It is asked with zero now and then.
	Room func(bytes int64) error
	// ObjectBytes is the memory for reading a manifest or a segment, one at a time.
	ObjectBytes int64
	// NameBytes is the memory for the names of the objects at the place, and for what is made of them; zero:
	// survey.EnoughNameBytes.
	NameBytes int64
	// TooLittle is why this member has no memory for a proof; nil: it has.
	TooLittle error
	LookEvery time.Duration // between two looks whether this member is appointed; zero: a second
	// Chain returns what this member has applied, and the hash at an index, as apply.Machine.ChainAt.
	Chain func(index consensus.Index) (applied consensus.Index, mark apply.ChainMark, known bool)
	// Again is how long a second look waits.
	Again  time.Duration
	Clock  env.Clock
	Logger *slog.Logger
}

const (
	reportLimit = 5 * time.Second
	// BytesPerSecond is how fast the place is read.
	BytesPerSecond = 32 << 20
	// mostRest bounds a rest, which else is as long as the work before it.
	mostRest = time.Second
)

// errLost is why a member whose store of a proof could not go on tries no other proof: what the store held is lost until the
// process ends, and is held once only.
var errLost = errors.New("the store of an earlier proof could not go on, as on a disk that is full or broken: restart this " +
	"member once the disk is well; until then others prove")

// Prover proves.
type Prover struct {
	options Options
	machine *attempt.Machine
	worked  time.Time // when the last rest ended
	hung    atomic.Int64
	working atomic.Bool
	lost    bool // the store of a proof could not go on
}

// New returns a Prover.
func New(o Options) *Prover {
	o.LookEvery = cmp.Or(o.LookEvery, time.Second)
	return &Prover{options: o, machine: attempt.New(attempt.Config{Member: o.Member, Look: o.LookEvery, Again: o.Again})}
}

// Run proves the backup each time that this member is appointed, until ctx ends. It does not wait for reads of the place that
// hang for longer than some seconds after that.
func (p *Prover) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if !p.machine.Rests() || p.hung.Load() <= mostHung {
			p.machine.Look(p.options.Clock.Now(), p.options.Row(), p.options.Chain)
		}
		for op, due := p.machine.Take(); due && ctx.Err() == nil; op, due = p.machine.Take() {
			p.do(ctx, &op)
		}
		_ = broadcast.Pause(ctx, p.machine.Pause())
	}
}

// Working reports whether a proof is under way, for which memory is held.
func (p *Prover) Working() bool { return p.working.Load() }

// do does an operation.
func (p *Prover) do(ctx context.Context, op *attempt.Op) {
	if op.Kind == attempt.Report {
		if !op.Again {
			p.tell(op)
		}
		p.machine.Reported(p.options.Clock.Now(), p.report(ctx, op))
		return
	}
	p.options.Logger.Info("proves the backup by a restore", "try", op.Row.Proofs.Number, "place", op.Row.Policy.Place)
	p.working.Store(true)
	found, err := p.look(ctx, op)
	p.working.Store(false)
	if hang := p.hung.Load(); hang > 0 {
		p.options.Logger.Warn("reads of the place of the backup hang, and were given up", "hang", hang)
	}
	if ctx.Err() != nil {
		return
	}
	p.machine.Look(p.options.Clock.Now(), p.options.Row(), p.options.Chain) // the try may be over
	p.machine.Proved(p.options.Clock.Now(), found, err)
}

// tell logs how a try ended.
func (p *Prover) tell(op *attempt.Op) {
	if op.Unknown > 0 {
		p.options.Logger.Warn("the place has bases of which the cluster knows nothing; they were not looked at",
			"bases", op.Unknown)
	}
	switch proof := &op.Command.Backup.Proof; {
	case proof.Proven && proof.Why == "":
		p.options.Logger.Info("the backup is proven", "revision", proof.Point.Revision, "bases", proof.Bases,
			"took", time.Duration(proof.Took)*time.Millisecond)
	case proof.Proven:
		p.options.Logger.Warn("the backup is proven, and not all of it is well", "damaged", proof.Damaged, "why", proof.Why)
	case proof.Failed:
		p.options.Logger.Error("the backup cannot be restored", "why", proof.Why)
	default:
		p.options.Logger.Warn("the backup could not be proven yet", "why", proof.Why)
	}
}

// report says how a try ended.
func (p *Prover) report(ctx context.Context, op *attempt.Op) error {
	ctx, cancel := context.WithTimeout(ctx, reportLimit)
	defer cancel()
	_, err := p.options.Propose(ctx, &op.Command)
	return err // without one it is applied, or refused for ever
}

// over reports whether a try is another member's now.
func (p *Prover) over(op *attempt.Op) bool { return !p.machine.Mine(op, p.options.Row()) }

// look proves what the place has now.
func (p *Prover) look(ctx context.Context, op *attempt.Op) (*prove.Proof, error) {
	switch {
	case p.lost:
		return nil, errLost
	case p.options.TooLittle != nil:
		return nil, p.options.TooLittle
	}
	life := ctx
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	patiently := &patient{life: life, cancel: cancel, every: p.options.LookEvery, hung: &p.hung,
		over: func() bool { return p.over(op) }}
	done, err := p.open(ctx, patiently, op.Row.Policy.Place)
	if err != nil {
		return nil, err
	}
	defer done()
	store := watched{pace.New(patiently, pace.Limits{BytesPerSecond: BytesPerSecond}), func() error {
		if p.over(op) {
			return errOver
		}
		return ctx.Err()
	}}
	p.worked = p.options.Clock.Now()
	look := survey.New(survey.Options{Store: store, Cluster: p.options.Cluster, Epoch: p.options.Epoch, Op: op,
		Row: p.options.Row, ObjectBytes: p.options.ObjectBytes, NameBytes: p.options.NameBytes, Part: func(
			ctx context.Context, run func(context.Context, prove.Options) (*prove.Proof, error),
		) (*prove.Proof, error) {
			return p.guarded(ctx, op, run)
		}})
	for look.Step(ctx) {
	}
	return look.Result()
}

// watched is a place that is asked for nothing once check fails.
type watched struct {
	objects.Store
	check func() error
}

// Get implements objects.Store.
func (w watched) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	return w.Store.Get(ctx, name, offset, length)
}

// List implements objects.Store.
func (w watched) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	if err := w.check(); err != nil {
		return nil, false, err
	}
	return w.Store.List(ctx, prefix, after, limit)
}

// guarded runs a proof. A store that cannot go on must not end the member: it is one of a copy. The engine's goroutines, and
// whatever waits for them, stay where they are until the process ends, with what they hold.
func (p *Prover) guarded(
	ctx context.Context, op *attempt.Op, run func(context.Context, prove.Options) (*prove.Proof, error),
) (*prove.Proof, error) {
	p.worked = p.options.Clock.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broken := make(chan error, 1)
	fatal := func(err error) {
		select {
		case broken <- err:
		default: // the first one says why
		}
		select {}
	}
	type ending struct {
		proof *prove.Proof
		err   error
	}
	ended := make(chan ending, 1)
	go func() {
		proof, err := run(ctx, prove.Options{FS: p.options.FS, Dir: p.options.Dir,
			OpenEngine: func(dir string) (engine.Engine, error) { return p.options.OpenEngine(dir, fatal) },
			Apply:      p.options.Apply, Parallel: 1, Room: p.options.Room, Rest: func() error { return p.rest(ctx, op) }})
		ended <- ending{proof, err}
	}()
	select {
	case e := <-ended:
		return e.proof, e.err
	case err := <-broken:
		p.lost = true
		return nil, errors.Join(fmt.Errorf("the store of the proof: %w", err), p.options.FS.RemoveAll(p.options.Dir))
	}
}

// open opens a place.
func (p *Prover) open(ctx context.Context, s *patient, url string) (done func(), err error) {
	type opened struct {
		store objects.Store
		done  func()
	}
	o, err := await(ctx, s, func() (o opened, err error) {
		o.store, o.done, err = p.options.Open(url)
		return o, err
	}, func(o opened, err error) {
		if err == nil {
			o.done()
		}
	})
	s.Store = o.store
	return o.done, err
}

// rest waits as long as the work took since the last rest. Its error ends the proof.
func (p *Prover) rest(ctx context.Context, op *attempt.Op) error {
	if p.over(op) {
		return errOver
	}
	if err := p.options.Room(0); err != nil {
		return err
	}
	err := broadcast.Pause(ctx, min(p.options.Clock.Now().Sub(p.worked), mostRest))
	p.worked = p.options.Clock.Now()
	return err
}
