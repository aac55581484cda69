package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/attempt"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/prove"
	"github.com/quorate/quorate/internal/backup/survey"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/member/shipping"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/storage/objects/retry"
)

// Times of proofs in a world.
const (
	proverAway     = 2 * time.Second
	proverPatience = 4 * time.Second
	proverAgain    = 500 * time.Millisecond
	proverReads    = 2 * time.Second // at most, now and then: between two steps of a proof
)

// prover proves the backup on a member in one of its lives, as package server/prover does: the machine is the one of members.
type prover struct {
	h       *host
	machine *attempt.Machine
	found   *prove.Proof // of the last look
	spoiled bool         // then, the base that leads to the newest state was damaged
	cut     bool         // then, nothing that was whole led there
}

// keepProofs appoints, on the leader, the member that proves the backup, as package member does; and proves on that member.
func keepProofs(h *host) {
	if !h.run.plan.Ships {
		return
	}
	appoints := false
	pace := h.run.buckets.pace
	leads := shipping.Prover{Away: pace * proverAway, Patience: pace * proverPatience, Settle: pace * backupPatience}
	own := &prover{h: h, machine: attempt.New(attempt.Config{Member: h.id, Again: pace * proverAgain,
		Behind: pace * proverPatience / 2, Faults: h.run.broken.Proves})}
	var look func()
	look = func() {
		h.after(backupScan, look)
		if !h.serves() || h.run.shipped {
			leads.Rest()
			return
		}
		row := h.proc.Data.Machine.Backup()
		if !h.leads() {
			leads.Rest()
		} else {
			status := h.proc.Node.Replica().Status()
			view := shipping.View{Row: row, Status: &status}
			if command, due := leads.Look(h.shipClock().Add(-h.date), h.shipClock().UnixMilli(), &view); due && !appoints {
				appoints = true
				h.proc.Clients.Propose(&command, func(kv.Result, error) { appoints = false })
			}
		}
		own.look()
	}
	look()
}

// look gives the machine the time and the row, and begins what it asks for.
func (p *prover) look() {
	p.machine.Look(p.h.shipClock(), p.h.proc.Data.Machine.Backup(), p.chain)
	op, due := p.machine.Take()
	switch {
	case !due:
	case op.Kind == attempt.Prove:
		p.prove(&op)
	default:
		p.judge(&op)
		p.report(&op.Command)
	}
}

func (p *prover) chain(index consensus.Index) (applied consensus.Index, mark apply.ChainMark, known bool) {
	machine := p.h.proc.Data.Machine
	mark, known = machine.ChainAt(index)
	return machine.Applied().Index, mark, known
}

// report replicates a report. Its end is told after a while, whether or not it is known.
func (p *prover) report(command *kv.Command) {
	over := false
	end := func(err error) {
		if !over {
			over = true
			p.machine.Reported(p.h.shipClock(), err)
		}
	}
	p.h.after(backupReports, func() { end(context.DeadlineExceeded) })
	p.h.proc.Clients.Propose(command, func(_ kv.Result, err error) { end(err) })
}

var errProofOver = errors.New("another member proves the backup")

// prove takes the steps of a look at the place, with time between them.
func (p *prover) prove(op *attempt.Op) {
	h := p.h
	b := h.run.buckets
	at := b.at(op.Row.Policy.Place)
	atOnce := func(context.Context, time.Duration) error { return nil }
	p.found, p.spoiled, p.cut = nil, false, false
	look := survey.New(survey.Options{Cluster: clusterID, Epoch: uint64(h.proc.Data.Identity.Epoch.Number), Op: op,
		Row:       func() *kv.BackupRow { return h.proc.Data.Machine.Backup() },
		Store:     retry.New(at, retry.Policy{Attempts: 6, First: 1, Most: 1}, atOnce, b.rules.Float64),
		NameBytes: b.nameBytes, Part: p.part, Faults: h.run.broken.Surveys})
	end := func(found *prove.Proof, err error) {
		_, back := b.delay(h.run.Now(), at)
		h.after(back, func() {
			p.machine.Look(h.shipClock(), h.proc.Data.Machine.Backup(), p.chain)
			p.machine.Proved(h.shipClock(), found, err)
			p.found = found
			p.look()
		})
	}
	var step func()
	step = func() {
		if !p.machine.Mine(op, h.proc.Data.Machine.Backup()) {
			end(nil, errProofOver)
			return
		}
		p.see(op, at, look.Listed())
		if !look.Step(context.Background()) {
			end(look.Result())
			return
		}
		to, _ := b.delay(h.run.Now(), at)
		reads := dice.Between(b.rules, 0, proverReads)
		for range 3 { // few are long: else no proof of many steps would end before another member is appointed
			reads = reads * reads / proverReads
		}
		h.after(to+reads, step)
	}
	to, _ := b.delay(h.run.Now(), at)
	h.after(to, step)
}

// part runs a part of a proof.
func (p *prover) part(
	ctx context.Context, run func(context.Context, prove.Options) (*prove.Proof, error),
) (*prove.Proof, error) {
	stores, fs := p.h.run.stores, disk.New()
	open, _ := stores.On(restoreSlot, fs)
	defer stores.End(restoreSlot)
	over, _ := stores.Over(fs)
	return run(ctx, prove.Options{FS: over, Dir: "proved", OpenEngine: open, Apply: p.h.cluster.restores(), Parallel: 1})
}

// restores are the options of the state machine of a restore.
func (c *cluster) restores() apply.Options {
	applies := c.list[0].options().Apply
	if c.run.plan.Rises {
		applies.Level = nextlevel.Level
	}
	return applies
}

// see notes what is damaged of that on which a proof depends.
func (p *prover) see(op *attempt.Op, at *bucket, c *backup.Catalog) {
	if c == nil { // nothing is listed yet
		return
	}
	own := *c
	own.Bases = slices.DeleteFunc(slices.Clone(c.Bases), func(b backup.Base) bool { return !op.Known(b.Hash) })
	all, err := own.Plan(backup.Target{}, func(backup.Hash) bool { return false })
	if err != nil {
		return
	}
	_, there := at.taken[all.Base.String()]
	p.spoiled = there && (at.spoiled[all.Base.String()] || at.lacks(&all.Base.BaseName))
	_, without := at.catalog()
	_, err = own.Plan(backup.Target{}, without)
	p.cut = err != nil
}

// judge judges what a member is about to report.
func (p *prover) judge(op *attempt.Op) {
	proof, row := &op.Command.Backup.Proof, op.Row
	report := func(format string, args ...any) {
		p.h.suite.Report("backup", fmt.Sprintf("member %v says of %s: %+v; %s", p.h.id, row.Policy.Place, *proof,
			fmt.Sprintf(format, args...)))
	}
	b := p.h.run.buckets
	at := b.at(row.Policy.Place)
	if (proof.Failed || proof.Damaged > 0 && !at.forged) && !at.touched && !b.late {
		report("nobody has damaged anything there")
	}
	if !proof.Proven {
		return
	}
	sum, known := p.h.suite.ChainSum(p.found.At.Index)
	switch {
	case known && sum != p.found.At.Sum:
		report("the cluster had another state")
	case proof.Point.Index < row.Progress.Restorable.Index:
		report("entry %d was there", row.Progress.Restorable.Index)
	case proof.Damaged == 0 && p.spoiled:
		report("the base from which it begins is damaged")
	case p.cut:
		report("nothing that is whole leads there")
	}
	p.judgeFound(at, report)
	if want, known := at.between(op); known && p.found.Bases+p.found.Left+p.found.Apart < want {
		report("%d bases were to be compared, and %d were, and %d and %d left out", want, p.found.Bases, p.found.Left,
			p.found.Apart)
	}
}

// judgeFound judges what a proof says of single objects and bases. Where nobody removed or damaged any, none that a member put
// is damaged and no log is lost; and no base is of another state, or left out though there is memory for names.
func (p *prover) judgeFound(at *bucket, report func(format string, args ...any)) {
	b := p.h.run.buckets
	if at.touched || b.late {
		return
	}
	for _, found := range p.found.Damaged {
		damage := (*fetch.DamageError)(nil)
		if !errors.As(found, &damage) {
			report("nobody has removed anything: %v", found)
		} else if _, own := at.taken[damage.Name]; own {
			report("a member put %s, and nobody has changed it", damage.Name)
		}
	}
	if p.found.Apart > 0 {
		report("%d bases are of another state, and nobody made others", p.found.Apart)
	}
	if p.found.Left > 0 && b.nameBytes == 0 {
		report("%d bases were left out, and there was memory for all names", p.found.Left)
	}
}

// between returns how many bases a proof is to compare: those that members made of the entry of the last one that was proven,
// or of a later one, up to the one at which the next proof begins. They are known if nothing but the log tells what is between
// them.
func (b *bucket) between(op *attempt.Op) (bases int, known bool) {
	c, _ := b.catalog()
	one := func(hash backup.Hash) int {
		return slices.IndexFunc(c.Bases, func(b backup.Base) bool { return b.Hash == hash })
	}
	from, to := one(op.After()), one(op.Command.Backup.Proof.Base)
	if b.touched || b.run.buckets.late || from < 0 || to < 0 || c.Kept != nil || len(c.Gaps) > 0 ||
		c.Bases[from].Epoch != c.Bases[to].Epoch {
		return 0, false
	}
	for i := range c.Bases {
		b := &c.Bases[i]
		if b.Index >= c.Bases[from].Index && b.Index <= c.Bases[to].Index && b.Hash != op.After() && op.Known(b.Hash) {
			bases++
		}
	}
	return bases, true
}
