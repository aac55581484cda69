package shipper

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/feed"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/perform"
	"github.com/quorate/quorate/internal/backup/turns"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/shipping"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Options are what a Shipper works on.
type Options struct {
	Cluster consensus.ClusterID
	Epoch   uint64
	Member  consensus.MemberID
	Build   string
	Feed    *feed.Feed
	// Row returns the row of the backup, as this member has applied it.
	Row func() *kv.BackupRow
	// Propose replicates a command.
	Propose func(ctx context.Context, command *kv.Command) (kv.Result, error)
	// Checkpoint copies a checkpoint of the store into a directory, which does not exist, and calls f with its state machine.
	Checkpoint func(ctx context.Context, dir string, f func(*apply.Machine) error) error
	// Open opens a place; close frees it.
	Open func(url string) (store objects.Store, close func(), err error)
	FS   env.FS
	Dir  string // for the files of a checkpoint; what is there is removed
	// HeldBytes bounds what waits for the place.
	HeldBytes int64
	// AtOnce is how many operations a place does at once (place.AtOnce); zero: ship.DefaultAtOnce.
	AtOnce int
	// NameBytes bounds what is known of the objects at the place: when it is opened (LeastNameBytes at least), and in a
	// round of retention.
	NameBytes int64
	Clock     env.Clock
	Logger    *slog.Logger
}

// nameTimes is how many times the bytes of a list of names a member holds that takes over: what it believes of them is a list,
// too, and so is what follows from the names.
const nameTimes = 3

// LeastNameBytes is what a member holds for names when it opens a place, however little Options.NameBytes is.
const LeastNameBytes = nameTimes * fetch.LeastNameBytes

// reportLimit bounds one report.
const reportLimit = 5 * time.Second

// Shipper ships.
type Shipper struct {
	options Options
	machine *turns.Machine
	ends    chan ended
	over    chan struct{} // closed when Run returns
	held    atomic.Int64
	ctx     context.Context
	cancel  context.CancelFunc // of the operations of this turn

	performer perform.Performer
	close     func() // the place that is open
}

// ended is an operation that has ended.
type ended struct {
	op  *turns.Op
	end end
}

// end tells how an operation ended.
type end struct {
	tell func() // the machine; called by Run
	drop func() // frees what nobody uses where the operation was given up; nil: there is nothing
}

// New returns a Shipper.
func New(o Options) *Shipper {
	machine := turns.New(turns.Config{Cluster: o.Cluster, Epoch: o.Epoch, Member: o.Member, Build: o.Build,
		HeldBytes: o.HeldBytes, KeepBytes: o.NameBytes, AtOnce: o.AtOnce, Lock: lockOf,
		Times: turns.Times{Report: shipping.ReportEvery}}, o.Feed)
	return &Shipper{options: o, machine: machine, ends: make(chan ended), over: make(chan struct{}),
		close: func() {}}
}

// Run ships in each turn of this member until ctx ends. Then it puts what waits, for some seconds at most. It does not wait for
// operations that the machine gave up: whatever they still do at the place, nobody is told of it. It is called once.
func (s *Shipper) Run(ctx context.Context) {
	s.renew(ctx)
	defer close(s.over)
	defer func() { s.cancel() }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	ending := ctx.Done()
	var more <-chan struct{} // nil: the machine waits for no entries
	for ending != nil || !s.machine.Rests() {
		next := func() { s.machine.Look(s.now(), s.options.Row()) }
		select {
		case <-timer.C:
		case <-more:
		case e := <-s.ends:
			next = func() { s.ended(e) }
		case <-ending:
			ending = nil
			next = func() { s.machine.End(s.now()) }
		}
		more = s.options.Feed.More() // before the machine looks: what is applied later closes it
		next()
		for _, op := range s.machine.Take() {
			s.begin(ctx, &op)
		}
		if !s.machine.Ships() {
			more = nil
		}
		s.held.Store(s.machine.Held())
		timer.Reset(s.machine.Pause())
	}
}

func (s *Shipper) ended(e ended) {
	if !s.machine.GaveUp(e.op) {
		e.end.tell()
		return
	}
	e.end.free()
	s.machine.Late(s.now(), e.op)
	s.options.Logger.Info("an operation on the place of the backup has ended that was given up", "hang", s.machine.Hung())
}

func (e *end) free() {
	if e.drop != nil {
		e.drop()
	}
}

// Held returns the bytes that wait for the place.
func (s *Shipper) Held() int64 { return s.held.Load() }

func (s *Shipper) now() time.Time { return s.options.Clock.Now() }

// renew gives the operations that follow a context that ends only when they are cancelled: what waits is put after ctx has
// ended.
func (s *Shipper) renew(ctx context.Context) {
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
}

func (s *Shipper) begin(ctx context.Context, op *turns.Op) {
	switch op.Kind {
	case turns.Open:
		s.goDo(op, func(ctx context.Context) end { return s.open(ctx, op) })
	case turns.Ship:
		performer := s.performer
		s.goDo(op, func(ctx context.Context) end {
			outcome := performer.Do(ctx, &op.Ship)
			return end{tell: func() { s.machine.Done(s.now(), &op.Ship, outcome) }}
		})
	case turns.Report:
		s.goDo(op, func(ctx context.Context) end {
			err := s.report(ctx, &op.Command)
			return end{tell: func() { s.machine.Reported(s.now(), err) }}
		})
	case turns.Cancel:
		s.cancel()
	case turns.Close:
		if hang := s.machine.Hung(); hang > 0 {
			s.options.Logger.Warn("operations on the place of the backup hang, and are given up", "hang", hang)
		}
		s.cancel()
		s.renew(ctx)
		s.close()
		s.close = func() {}
		if err := s.options.FS.RemoveAll(s.options.Dir); err != nil {
			s.options.Logger.Warn("could not remove the files of a checkpoint", "err", err)
		}
		s.machine.Closed(s.now())
	}
}

// goDo does an operation in a goroutine, and hands Run its end, unless that has returned.
func (s *Shipper) goDo(op *turns.Op, do func(ctx context.Context) end) {
	ctx := s.ctx
	go func() {
		end := do(ctx)
		select {
		case s.ends <- ended{op, end}:
		case <-s.over:
			end.free()
		}
	}()
}

// open opens a place and lists it.
func (s *Shipper) open(ctx context.Context, op *turns.Op) end {
	store, free, err := s.options.Open(op.Place)
	var catalog *backup.Catalog
	if err == nil {
		if catalog, err = s.list(ctx, store); err != nil {
			free()
			free = nil
		}
	}
	return end{drop: free, tell: func() {
		if err != nil {
			if ctx.Err() == nil {
				s.options.Logger.Warn("cannot ship the backup", "place", op.Place, "err", err)
			}
		} else {
			s.close = free
			s.performer = perform.Performer{Store: store, FS: s.options.FS, Dir: s.options.Dir,
				Checkpoint: s.options.Checkpoint, Lock: op.Lock, Generation: op.Generation}
		}
		if errors.Is(err, objects.ErrNotAllowed) {
			err = &turns.Barred{Err: err}
		}
		s.machine.Opened(s.now(), catalog, err)
		switch {
		case s.machine.Ships():
			s.options.Logger.Info("ships the backup", "turn", s.options.Row().Turn)
		case err == nil: // the machine refuses the place, and opens it again
			s.close()
			s.close = func() {}
		}
	}}
}

// list lists what a place has up to what this member has applied.
func (s *Shipper) list(ctx context.Context, store objects.Store) (*backup.Catalog, error) {
	applied, known := s.options.Feed.Last()
	if !known {
		return nil, turns.ErrNotFollowed
	}
	row := s.options.Row()
	return fetch.Recent(ctx, store, fetch.Window{Cluster: s.options.Cluster, Epoch: s.options.Epoch, Most: applied.Index,
		Known:  func(h backup.Hash) bool { return row.Knows(h) },
		Memory: max(s.options.NameBytes, LeastNameBytes) / nameTimes})
}

func (s *Shipper) report(ctx context.Context, command *kv.Command) error {
	ctx, cancel := context.WithTimeout(ctx, reportLimit)
	defer cancel()
	result, err := s.options.Propose(ctx, command)
	if err == nil {
		err = result.Err
	}
	return err
}
