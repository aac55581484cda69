package prover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/prove"
	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/printable"
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
	// NameBytes is the memory for the names of the objects at the place.
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
	lookOften   = 100 * time.Millisecond // whether an entry is applied
	mostBehind  = 10 * time.Second
	reportLimit = 5 * time.Second
	// BytesPerSecond is how fast the place is read.
	BytesPerSecond = 32 << 20
	// mostRest bounds a rest, which else is as long as the work before it.
	mostRest = time.Second
)

// errEncrypted is why members cannot prove a backup that is encrypted to recipients: they have none of the identities.
var errEncrypted = errors.New("it is encrypted, and members cannot read what they write: only an operator can prove it, by " +
	"`quorate backup verify --from URL --identity FILE --report --endpoints MEMBERS`")

// errLost is why a member whose store of a proof could not go on tries no other proof: what the store held is lost until the
// process ends, and is held once only.
var errLost = errors.New("the store of an earlier proof could not go on, as on a disk that is full or broken: restart this " +
	"member once the disk is well; until then others prove")

// Prover proves.
type Prover struct {
	options Options
	worked  time.Time // when the last rest ended
	hung    atomic.Int64
	working atomic.Bool
	lost    bool // the store of a proof could not go on
}

// New returns a Prover.
func New(o Options) *Prover {
	o.LookEvery = cmp.Or(o.LookEvery, time.Second)
	return &Prover{options: o}
}

// Run proves the backup each time that this member is appointed, until ctx ends. It does not wait for reads of the place that
// hang for longer than some seconds after that.
func (p *Prover) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if row := p.options.Row(); p.mine(row, row.Proofs.Number) && p.hung.Load() <= mostHung {
			p.working.Store(true)
			p.try(ctx, row)
			p.working.Store(false)
		}
		_ = broadcast.Pause(ctx, p.options.LookEvery)
	}
}

// Working reports whether a proof is under way, for which memory is held.
func (p *Prover) Working() bool { return p.working.Load() }

func (p *Prover) mine(row *kv.BackupRow, number uint64) bool {
	return row.Policy.On && row.Proofs.Member == uint64(p.options.Member) && row.Proofs.Number == number
}

// try proves once, and reports.
func (p *Prover) try(ctx context.Context, row *kv.BackupRow) {
	began := p.options.Clock.Now()
	p.options.Logger.Info("proves the backup by a restore", "try", row.Proofs.Number, "place", row.Policy.Place)
	reported := row.Progress.Restorable.Index
	found, err := p.look(ctx, row)
	if err != nil && prove.Verdict(err) || found != nil && (len(found.Damaged) > 0 || uint64(found.At.Index) < reported) {
		_ = broadcast.Pause(ctx, p.options.Again) // what is removed by rule is missing for a moment
		found, err = p.look(ctx, row)
	}
	if err == nil {
		err = p.caughtUp(ctx, found.At.Index)
	}
	if hang := p.hung.Load(); hang > 0 {
		p.options.Logger.Warn("reads of the place of the backup hang, and were given up", "hang", hang)
	}
	if ctx.Err() != nil || errors.Is(err, errOver) {
		return
	}
	proof := proofOf(found, err)
	switch {
	case !proof.Proven:
	case proof.Point.Index < reported:
		fail(&proof, fmt.Sprintf("objects are gone: those that are left lead to entry %d, and entry %d was there",
			proof.Point.Index, reported))
	case p.otherHistory(found), otherEnd(found, &row.Progress):
		fail(&proof, fmt.Sprintf("the place has another history of this cluster: entry %d has another sum there",
			proof.Point.Index))
	}
	if found != nil && found.Unknown > 0 {
		p.options.Logger.Warn("the place has bases of which the cluster knows nothing; they were not looked at",
			"bases", found.Unknown)
	}
	now := p.options.Clock.Now()
	proof.At, proof.Took = now.UnixMilli(), max(0, now.Sub(began).Milliseconds())
	switch {
	case proof.Proven && proof.Damaged == 0:
		p.options.Logger.Info("the backup is proven", "revision", proof.Point.Revision, "bases", proof.Bases,
			"took", now.Sub(began))
	case proof.Proven:
		p.options.Logger.Warn("the backup is proven, and has damaged objects", "damaged", proof.Damaged, "why", proof.Why)
	case proof.Failed:
		p.options.Logger.Error("the backup cannot be restored", "why", proof.Why)
	default:
		p.options.Logger.Warn("the backup could not be proven yet", "why", proof.Why)
	}
	p.report(ctx, row, &proof)
}

// caughtUp waits a while until this member has applied an entry. The error says that it has not.
func (p *Prover) caughtUp(ctx context.Context, index consensus.Index) error {
	for until := p.options.Clock.Now().Add(mostBehind); ; {
		applied, _, _ := p.options.Chain(index)
		switch {
		case applied >= index || ctx.Err() != nil:
			return nil
		case !p.options.Clock.Now().Before(until):
			return fmt.Errorf("the place leads to entry %d, and this member, which cannot compare it, has applied "+
				"%d entries so far", index, applied)
		}
		_ = broadcast.Pause(ctx, lookOften)
	}
}

// otherHistory reports whether the state that was proven is none that this member had.
func (p *Prover) otherHistory(found *prove.Proof) bool {
	_, mark, known := p.options.Chain(found.At.Index)
	return known && mark.Index == found.At.Index && mark.Since == found.Since && mark.Sum != found.At.Sum
}

// otherEnd reports whether the state that was proven is another one than the member had that shipped it. This member may not
// know: it forgets its chain's sums when it ends.
func otherEnd(found *prove.Proof, reported *kv.BackupProgress) bool {
	return reported.Sum != 0 && uint64(found.At.Index) == reported.Restorable.Index && found.At.Sum != reported.Sum
}

// look proves what the place has now.
func (p *Prover) look(ctx context.Context, row *kv.BackupRow) (*prove.Proof, error) {
	switch {
	case row.Policy.Recipients != "":
		return nil, errEncrypted
	case p.lost:
		return nil, errLost
	case p.options.TooLittle != nil:
		return nil, p.options.TooLittle
	}
	life := ctx
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	patiently := &patient{life: life, cancel: cancel, every: p.options.LookEvery, hung: &p.hung,
		over: func() bool { return !p.mine(p.options.Row(), row.Proofs.Number) }}
	done, err := p.open(ctx, patiently, row.Policy.Place)
	if err != nil {
		return nil, err
	}
	defer done()
	store := watched{pace.New(patiently, pace.Limits{BytesPerSecond: BytesPerSecond}), func() error {
		if !p.mine(p.options.Row(), row.Proofs.Number) {
			return errOver
		}
		return ctx.Err()
	}}
	most := consensus.Index(row.Progress.Restorable.Index)
	if most == 0 { // nothing was reported yet
		most = math.MaxUint64
	}
	catalog, err := fetch.Recent(ctx, store, p.options.Cluster, row.Proofs.Proven.Base, most, p.options.NameBytes)
	switch {
	case err != nil:
		return nil, err
	case catalog.Cut && len(catalog.Bases) == 0:
		return nil, fmt.Errorf("the place has more than %d objects of the log since its last base, and this member has no "+
			"memory for more: raise its --memory", len(catalog.Segments))
	}
	p.worked = p.options.Clock.Now()
	proof, err := p.proveEnd(ctx, row, store, catalog)
	if catalog.Cut && (prove.Verdict(err) || err == nil && proof.At.Index < consensus.Index(row.Progress.Restorable.Index)) {
		return nil, fmt.Errorf("%w (%v)", errCut, err) // err is no cause: it would be a verdict
	}
	return proof, err
}

// errCut is why a backup could not be proven of which a part was not looked at. Nothing that was found wrong is a verdict then.
var errCut = errors.New("the place has more segments after the bases, or notes of gaps, than a member lists: the next base " +
	"makes them fewer, and `quorate backup verify` lists all")

// proveEnd proves what of a catalog leads to the state that was reported. If that is damaged, or gone, the rest may replace it.
func (p *Prover) proveEnd(
	ctx context.Context, row *kv.BackupRow, store objects.Store, catalog *backup.Catalog,
) (*prove.Proof, error) {
	end := backup.Point{Index: consensus.Index(row.Progress.Restorable.Index), Sum: row.Progress.Sum}
	if own, err := catalog.LeadingTo(end); end.Sum != 0 && err == nil {
		if proof, err := p.prove(ctx, row, store, own); err == nil || !prove.Verdict(err) {
			return proof, err
		}
	}
	return p.prove(ctx, row, store, catalog)
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

// fits says which segment this member has too little memory for.
func (p *Prover) fits(c *backup.Catalog) error {
	for i := range c.Segments {
		if s := &c.Segments[i]; s.Size > p.options.ObjectBytes {
			return fmt.Errorf("object %v has %d bytes, and this member has memory for %d: raise its --memory", s, s.Size,
				p.options.ObjectBytes)
		}
	}
	return nil
}

// prove proves a catalog. A store that cannot go on must not end the member: it is one of a copy. The engine's goroutines, and
// whatever waits for them, stay where they are until the process ends, with what they hold.
func (p *Prover) prove(ctx context.Context, row *kv.BackupRow, store objects.Store, c *backup.Catalog) (*prove.Proof, error) {
	if err := p.fits(c); err != nil {
		return nil, err
	}
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
		proof, err := prove.Run(ctx, prove.Options{Store: store, FS: p.options.FS, Dir: p.options.Dir,
			OpenEngine: func(dir string) (engine.Engine, error) { return p.options.OpenEngine(dir, fatal) },
			Apply:      p.options.Apply, Parallel: 1, After: row.Proofs.Proven.Base, Known: known(row), Room: p.options.Room,
			ObjectBytes: p.options.ObjectBytes, Rest: func() error { return p.rest(ctx, row.Proofs.Number) }}, c)
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
func (p *Prover) rest(ctx context.Context, number uint64) error {
	if !p.mine(p.options.Row(), number) {
		return errOver
	}
	if err := p.options.Room(0); err != nil {
		return err
	}
	err := broadcast.Pause(ctx, min(p.options.Clock.Now().Sub(p.worked), mostRest))
	p.worked = p.options.Clock.Now()
	return err
}

// proofOf is how a try ended, in the form of the row.
func proofOf(found *prove.Proof, err error) kv.BackupProof {
	if err != nil {
		failed := prove.Verdict(err)
		proof := kv.BackupProof{Failed: failed, Why: cut(err.Error())}
		if failed {
			proof.Damaged = 1
		}
		return proof
	}
	proof := kv.BackupProof{Proven: true, Point: kv.BackupPoint{Index: uint64(found.At.Index), Revision: found.At.Revision,
		Time: found.At.Time}, Bases: uint64(found.Bases), Entries: uint64(found.Entries), Base: found.Base.Hash,
		Damaged: uint64(len(found.Damaged))}
	if len(found.Damaged) > 0 {
		proof.Why = cut(found.Damaged[0].Error())
	}
	return proof
}

// fail makes a proof one of damage.
func fail(proof *kv.BackupProof, why string) {
	proof.Proven, proof.Failed, proof.Damaged, proof.Why = false, true, proof.Damaged+1, why
}

// report says how a try ended, until the cluster has it or does not want it.
func (p *Prover) report(ctx context.Context, row *kv.BackupRow, proof *kv.BackupProof) {
	op := &kv.BackupOp{Kind: kv.BackupProved, Turn: row.Proofs.Number, Member: uint64(p.options.Member), Proof: *proof}
	for ctx.Err() == nil && p.mine(p.options.Row(), row.Proofs.Number) {
		attempt, cancel := context.WithTimeout(ctx, reportLimit)
		_, err := p.options.Propose(attempt, &kv.Command{Backup: op})
		cancel()
		if err == nil {
			return // it is applied, or refused for ever
		}
		_ = broadcast.Pause(ctx, p.options.LookEvery)
	}
}

// cut makes a text fit into a proof.
func cut(text string) string { return cmp.Or(printable.Within(text, kv.MaxBackupProofBytes), "-") }

// known reports which bases members of the cluster made, as far as it knows: nobody else's store is opened here. The last base
// that was proven was known then.
func known(row *kv.BackupRow) func(backup.Hash) bool {
	return func(h backup.Hash) bool { return h != (backup.Hash{}) && h == row.Proofs.Proven.Base || row.Knows(h) }
}
