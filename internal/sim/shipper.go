package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/feed"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/perform"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/backup/turns"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
)

// shipTimes are a tenth of a member's, or less.
var shipTimes = turns.Times{Look: 100 * time.Millisecond, Tick: 50 * time.Millisecond, Report: backupReports,
	News: 100 * time.Millisecond, Retry: 500 * time.Millisecond, Slow: backupSlow, End: time.Second,
	Leave: 30 * time.Second, Quit: 5 * time.Second}

// shipTimes are those of the world, by the clocks of its backup.
func (b *buckets) shipTimes() turns.Times {
	t := shipTimes
	for _, one := range []*time.Duration{
		&t.Look, &t.Tick, &t.Report, &t.News, &t.Retry, &t.Slow, &t.End, &t.Leave, &t.Quit,
	} {
		*one *= b.pace
	}
	return t
}

// shipper ships the backup of a member in one of its lives, as package server/shipper does: the machine is the one of members,
// and operations take effect, and end, later.
type shipper struct {
	h         *host
	feed      *feed.Feed
	machine   *turns.Machine
	under     map[*task]bool
	performer perform.Performer
	at        *bucket
}

// task is an operation under way.
type task struct {
	cancelled func() // tells the machine that it was cancelled
	over      bool   // its end was told
	void      bool   // it was cancelled
	ships     bool   // it is one of package ship at the place
}

// leastKept is the memory of a round of retention in a world, at least: for what its places have.
const leastKept = 256 << 10

// newShipper returns the shipper of a life; nil in a world without a backup.
func newShipper(h *host, data *datadir.Data) *shipper {
	if !h.run.plan.Ships {
		return nil
	}
	s := &shipper{h: h, under: map[*task]bool{}, feed: feed.New(h.run.buckets.held)}
	s.feed.Begin(data.Machine)
	s.machine = turns.New(turns.Config{Cluster: clusterID, Epoch: uint64(data.Identity.Epoch.Number), Member: h.id,
		Build: "1.1.0", HeldBytes: h.run.buckets.held, KeepBytes: max(h.run.buckets.held, leastKept),
		AtOnce: h.run.buckets.atOnce, Lock: h.run.buckets.sealing.lock,
		Times: h.run.buckets.shipTimes(), Faults: h.run.broken.Ships}, s.feed)
	return s
}

// keepShipping gives the machine the time and the row.
func keepShipping(h *host) {
	s := h.ships
	if s == nil {
		return
	}
	ends := false
	var look func()
	look = func() {
		h.after(s.machine.Pause()/h.run.buckets.pace, look)
		if h.run.shipped && !ends {
			ends = true
			s.machine.End(h.shipClock())
		}
		s.machine.Look(h.shipClock(), h.proc.Data.Machine.Backup())
		s.begin()
	}
	look()
}

// begin begins what the machine asks for.
func (s *shipper) begin() {
	defer s.judge()
	ops := s.machine.Take()
	for i := range ops {
		switch op := &ops[i]; op.Kind {
		case turns.Open:
			s.open(op)
		case turns.Ship:
			s.ship(&op.Ship)
		case turns.Report:
			s.report(&op.Command)
		case turns.Cancel:
			s.cancel()
		case turns.Close:
			s.h.after(time.Millisecond, func() {
				_ = s.performer.FS.RemoveAll(s.performer.Dir) // the next checkpoint removes what is left
				s.machine.Closed(s.h.shipClock())
				s.begin()
			})
		}
	}
}

// judge wants memory, and the operations at the place that are under way, within their bounds.
func (s *shipper) judge() {
	ships := 0
	for op := range s.under {
		if op.ships {
			ships++
		}
	}
	if b := s.h.run.buckets; ships > b.atOnce && !s.h.run.broken.Ships.EarlyAck {
		s.h.run.suite.Report("backup", fmt.Sprintf("member %v has %d operations at the place under way, which does %d at once",
			s.h.id, ships, b.atOnce))
	}
	most := s.h.run.buckets.held
	if s.feed.Held() > most || s.machine.Held() > 2*most+4<<10 { // packed entries have heads
		s.h.run.suite.Report("backup", fmt.Sprintf("member %v holds %d and %d bytes for the backup, of %d", s.h.id,
			s.feed.Held(), s.machine.Held(), most))
	}
}

// do lets an operation take effect, and end, later. late says that it takes effect even if it was cancelled, or its process has
// ended.
func (s *shipper) do(late bool, cancelled func(), effect func() (end func())) *task {
	op := &task{cancelled: cancelled}
	s.under[op] = true
	b := s.h.run.buckets
	to, back := b.delay(s.h.run.Now(), s.at)
	act := func() {
		if !late && op.void {
			return
		}
		end := effect()
		s.h.after(back, func() { s.tell(op, end) })
	}
	if late && b.late {
		s.h.run.After(to, act)
	} else {
		s.h.after(to, act)
	}
	return op
}

func (s *shipper) tell(op *task, end func()) {
	if op.over {
		return
	}
	op.over = true
	delete(s.under, op)
	end()
	s.begin()
}

// cancel ends all that is under way. The order of their ends does not matter to the machine.
func (s *shipper) cancel() {
	for op := range s.under {
		op.void = true
	}
	s.h.after(time.Millisecond, func() {
		for op := range s.under {
			if op.void {
				op.over = true
				delete(s.under, op)
				op.cancelled()
			}
		}
		s.begin()
	})
}

func (s *shipper) open(op *turns.Op) {
	s.at = s.h.run.buckets.at(op.Place)
	options := s.h.options()
	fs := options.FS
	s.performer = perform.Performer{Store: s.at, FS: fs, Dir: fs.PathJoin(options.WorkDir(), "shipped"),
		Checkpoint: s.h.proc.Snapshots.Checkpoint, Lock: op.Lock, Generation: op.Generation}
	opened := func(c *backup.Catalog, err error) { s.machine.Opened(s.h.shipClock(), c, err) }
	s.do(false, func() { opened(nil, context.Canceled) }, func() func() {
		applied, known := s.feed.Last()
		if !known {
			return func() { opened(nil, turns.ErrNotFollowed) }
		}
		epoch := uint64(s.h.proc.Data.Identity.Epoch.Number)
		row := s.h.proc.Data.Machine.Backup()
		catalog, err := fetch.Recent(context.Background(), s.at, fetch.Window{Cluster: clusterID, Epoch: epoch,
			Most: applied.Index, Known: func(h backup.Hash) bool {
				return row.Knows(h) && !s.h.run.broken.Ships.Believes
			}})
		return func() { opened(catalog, err) }
	})
}

func (s *shipper) ship(op *ship.Op) {
	done := func(o ship.Outcome) { s.machine.Done(s.h.shipClock(), op, o) }
	performer := s.performer
	cancelled := ship.Outcome{Result: ship.Failed, Why: context.Canceled.Error()}
	task := s.do(op.Kind == ship.Put, func() { done(cancelled) }, func() func() {
		o := performer.Do(context.Background(), op)
		s.interrupt(op)
		return func() { done(o) }
	})
	task.ships = op.Kind != ship.Checkpoint && op.Kind != ship.Discard
}

// report replicates a report. Its end is told after a while, whether or not it is known.
func (s *shipper) report(command *kv.Command) {
	op := &task{}
	op.cancelled = func() { s.machine.Reported(s.h.shipClock(), context.Canceled) }
	s.under[op] = true
	s.h.after(backupReports, func() { s.tell(op, op.cancelled) })
	s.h.proc.Clients.Propose(command, func(r kv.Result, err error) {
		if err == nil {
			err = r.Err
		}
		s.tell(op, func() { s.machine.Reported(s.h.shipClock(), err) })
	})
}
