package shipper

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/perform"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/base/broadcast"
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
	Feed    *Feed
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
	Clock     env.Clock
	Logger    *slog.Logger
}

// Times of a Shipper.
const (
	lookEvery   = time.Second            // whose turn it is
	tickEvery   = 100 * time.Millisecond // of package ship
	reportEvery = shipping.ReportEvery   // at most: entries that are sealed faster are reported faster
	reportLimit = 5 * time.Second        // for one report
	retryAfter  = 5 * time.Second        // of a place that does not open, or cannot be listed
)

// Shipper ships.
type Shipper struct{ options Options }

// New returns a Shipper.
func New(o Options) *Shipper { return &Shipper{o} }

// Run ships in each turn of this member until ctx ends.
func (s *Shipper) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if row := s.options.Row(); s.mine(row) {
			s.turn(ctx, row)
		}
		_ = broadcast.Pause(ctx, lookEvery)
	}
}

func (s *Shipper) mine(row *kv.BackupRow) bool {
	return row.Policy.On && row.Member == uint64(s.options.Member)
}

// turn ships until the turn is over, or the place does not open.
func (s *Shipper) turn(ctx context.Context, row *kv.BackupRow) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &turn{shipper: s, row: row, results: make(chan done, 16), reports: make(chan error, 1)}
	err := t.begin(ctx)
	if err == nil {
		defer t.end()
		s.options.Logger.Info("ships the backup", "turn", row.Turn, "from", uint64(t.next))
		t.run(ctx)
		return
	}
	if ctx.Err() != nil {
		return
	}
	s.options.Logger.Warn("cannot ship the backup", "place", row.Policy.Place, "err", err)
	t.trouble = err.Error()
	t.report(ctx)
	t.settleReport(<-t.reports)
	_ = broadcast.Pause(ctx, retryAfter)
}

// turn is one turn of this member.
type turn struct {
	shipper *Shipper
	row     *kv.BackupRow
	ship    *ship.Shipper
	next    consensus.Index // the last entry that was given
	store   objects.Store
	close   func()
	over    bool

	performer perform.Performer
	results   chan done
	running   int
	copying   []ship.Op // checkpoints and their removals, one after the other
	copies    bool      // one is under way
	filing    int       // PutFile operations under way

	reports  chan error // of the report under way
	asking   bool
	reported time.Time
	last     ship.Progress // that was reported
	trouble  string
}

// done is how an operation ended.
type done struct {
	op      ship.Op
	outcome ship.Outcome
}

var errNotFollowed = errors.New("nothing was applied since the backup is on")

// begin opens the place and finds where to go on.
func (t *turn) begin(ctx context.Context) (err error) {
	o := &t.shipper.options
	if t.store, t.close, err = o.Open(t.row.Policy.Place); err != nil {
		return err
	}
	catalog, err := fetch.Catalog(ctx, t.store, o.Cluster)
	if err != nil {
		t.close()
		return err
	}
	last, known := o.Feed.last()
	if !known {
		t.close()
		return errNotFollowed
	}
	start := ship.Begin(catalog, last.Index, o.Feed.sum)
	t.next = start.Applied
	t.ship = ship.New(ship.Config{Cluster: o.Cluster, Epoch: o.Epoch, Member: o.Member, Build: o.Build,
		SealAfter: t.row.Policy.SealMillis, BaseEvery: t.row.Policy.BaseSeconds * 1000,
		HeldBytes: min(o.HeldBytes, t.row.Policy.LogBytes)}, start, t.now())
	t.performer = perform.Performer{Store: t.store, FS: o.FS, Dir: o.Dir, Checkpoint: o.Checkpoint}
	return nil
}

func (t *turn) now() int64 { return t.shipper.options.Clock.Now().UnixMilli() }

// end waits for what is under way.
func (t *turn) end() {
	for ; t.running > 0; t.running-- {
		<-t.results
	}
	if t.asking {
		<-t.reports
	}
	if err := t.shipper.options.FS.RemoveAll(t.shipper.options.Dir); err != nil {
		t.shipper.options.Logger.Warn("could not remove the files of a checkpoint", "err", err)
	}
	t.close()
}

// run ships until the turn is over.
func (t *turn) run(ctx context.Context) {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for ctx.Err() == nil && !t.over {
		row := t.shipper.options.Row()
		if !t.shipper.mine(row) || row.Turn != t.row.Turn {
			return
		}
		batches, more := t.shipper.options.Feed.after(t.next)
		for _, b := range batches {
			t.ship.Applied(t.now(), b)
			t.next = b.Items[len(b.Items)-1].Entry.Index
		}
		t.ship.Tick(t.now())
		t.perform(ctx)
		t.reportIfDue(ctx)
		select {
		case <-more:
		case <-ticker.C:
		case d := <-t.results:
			t.ended(&d)
		case err := <-t.reports:
			t.asking = false
			t.settleReport(err)
		case <-ctx.Done():
		}
	}
}

// perform begins the operations that are due. Files of a checkpoint are not put while it is made or removed.
func (t *turn) perform(ctx context.Context) {
	for _, op := range t.ship.Take() {
		switch op.Kind {
		case ship.Checkpoint, ship.Discard:
			t.copying = append(t.copying, op)
		default:
			t.start(ctx, op)
		}
	}
	if len(t.copying) > 0 && !t.copies && t.filing == 0 {
		t.copies = true
		op := t.copying[0]
		t.copying = t.copying[1:]
		t.start(ctx, op)
	}
}

func (t *turn) start(ctx context.Context, op ship.Op) {
	t.running++
	if op.Kind == ship.PutFile {
		t.filing++
	}
	go func() { t.results <- done{op, t.performer.Do(ctx, &op)} }()
}

func (t *turn) ended(d *done) {
	t.running--
	switch d.op.Kind {
	case ship.PutFile:
		t.filing--
	case ship.Checkpoint, ship.Discard:
		t.copies = false
	}
	if d.op.Kind != ship.Discard {
		t.ship.Done(d.op.ID, d.outcome)
	}
}

// reportIfDue reports now and then, and at once what an operator waits for.
func (t *turn) reportIfDue(ctx context.Context) {
	if t.asking {
		return
	}
	p := t.ship.Progress()
	news := p.Base != t.last.Base || p.Gaps != t.last.Gaps || (p.Trouble == "") != (t.last.Trouble == "") ||
		p.Restorable.Index > 0 && t.last.Restorable.Index == 0
	waited := t.shipper.options.Clock.Now().Sub(t.reported)
	every := min(reportEvery, 10*time.Duration(t.row.Policy.SealMillis)*time.Millisecond)
	if waited >= every || news && waited >= lookEvery {
		t.last, t.trouble = p, p.Trouble
		t.report(ctx)
	}
}

// report says how far this member is.
func (t *turn) report(ctx context.Context) {
	t.asking, t.reported = true, t.shipper.options.Clock.Now()
	progress := t.progress()
	go func() {
		ctx, cancel := context.WithTimeout(ctx, reportLimit)
		defer cancel()
		result, err := t.shipper.options.Propose(ctx, &kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupReport, Turn: t.row.Turn,
			Member: uint64(t.shipper.options.Member), Progress: progress}})
		if err == nil {
			err = result.Err
		}
		t.reports <- err
	}()
}

// settleReport ends the turn if the cluster says that it is over.
func (t *turn) settleReport(err error) {
	if errors.Is(err, kv.ErrBadCommand) {
		t.over = true
	}
}

func (t *turn) progress() kv.BackupProgress {
	p := &t.last
	now := t.now()
	said := kv.BackupProgress{At: now, Restorable: point(&p.Restorable), Base: point(&p.Base), Gaps: uint64(p.Gaps),
		Trouble: cut(t.trouble)}
	if p.Restorable.Index > 0 && p.Restorable.Index == p.Applied { // nothing waits: it is the state of now
		said.Restorable.Time = now
	}
	if p.Gap.After > 0 {
		said.Gap = kv.BackupGap{After: uint64(p.Gap.After), Until: uint64(p.Gap.Until), Time: p.Gap.Time}
	}
	return said
}

func point(h *backup.Head) kv.BackupPoint {
	return kv.BackupPoint{Index: uint64(h.Index), Revision: h.Revision, Time: h.Time}
}
