package attempt_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/attempt"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/prove"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// rig is a member that is appointed for try 7, in whose row entry 20 can be restored.
type rig struct {
	t       *testing.T
	machine *attempt.Machine
	now     time.Time
	row     *kv.BackupRow
	applied consensus.Index
	sum     uint64 // of its own chain
}

func newRig(t *testing.T) *rig {
	t.Helper()
	row := &kv.BackupRow{Policy: kv.BackupPolicy{On: true}, Proofs: kv.BackupProofs{Number: 7, Member: 3}}
	row.Progress.Restorable.Index = 20
	return &rig{t: t, now: time.UnixMilli(1_790_000_000_000), row: row, applied: 20, sum: 5,
		machine: attempt.New(attempt.Config{Member: 3, Look: time.Second, Again: 5 * time.Second})}
}

// look lets time pass, and returns what the machine asks for.
func (r *rig) look(passed time.Duration) (attempt.Op, bool) {
	r.now = r.now.Add(passed)
	r.machine.Look(r.now, r.row, func(index consensus.Index) (consensus.Index, apply.ChainMark, bool) {
		return r.applied, apply.ChainMark{Index: index, Sum: r.sum}, true
	})
	return r.machine.Take()
}

// proves wants a look at the place, and ends it.
func (r *rig) proves(passed time.Duration, found *prove.Proof, err error) {
	r.t.Helper()
	if op, due := r.look(passed); !due || op.Kind != attempt.Prove {
		r.t.Fatalf("%+v, %v", op, due)
	}
	r.machine.Proved(r.now, found, err)
}

// reports wants a report.
func (r *rig) reports(passed time.Duration) kv.BackupProof {
	r.t.Helper()
	op, due := r.look(passed)
	if !due || op.Kind != attempt.Report || op.Command.Backup.Turn != 7 || op.Command.Backup.Member != 3 {
		r.t.Fatalf("%+v, %v", op, due)
	}
	return op.Command.Backup.Proof
}

func proof(index consensus.Index, sum uint64) *prove.Proof {
	return &prove.Proof{At: backup.Head{Point: backup.Point{Index: index, Sum: sum}}, Base: backup.Base{
		BaseName: backup.BaseName{Hash: backup.Hash{1}}}}
}

var errDamage error = &fetch.DamageError{Name: "log/x", Err: backup.ErrDamaged}

// Ensure that each way in which a try ends is reported as what it is.
func TestMachine_walk(t *testing.T) {
	damaged := proof(20, 5)
	damaged.Damaged = []error{errDamage}
	for name, c := range map[string]struct {
		found, again   *prove.Proof // again: of a second look
		err, errAgain  error
		applied        consensus.Index
		second         bool
		proven, failed bool
		damaged        uint64
		why            string
	}{
		"proven":                {found: proof(20, 5), applied: 20, proven: true},
		"proven, and damaged":   {found: damaged, again: damaged, applied: 20, second: true, proven: true, damaged: 1, why: "log/x"},
		"damaged":               {err: errDamage, errAgain: errDamage, applied: 20, second: true, failed: true, damaged: 1, why: "log/x"},
		"missing for a moment":  {err: errDamage, again: proof(20, 5), applied: 20, second: true, proven: true},
		"its end is gone":       {found: proof(19, 5), again: proof(19, 5), applied: 20, second: true, failed: true, damaged: 1, why: "objects are gone"},
		"its end comes back":    {found: proof(19, 5), again: proof(20, 5), applied: 20, second: true, proven: true},
		"another history":       {found: proof(20, 6), applied: 20, failed: true, damaged: 1, why: "another history"},
		"this member is behind": {found: proof(20, 5), applied: 19, why: "has applied 19"},
		"the place is away":     {err: errors.New("no route"), applied: 20, why: "no route"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.applied = c.applied
			r.proves(0, c.found, c.err)
			if c.second {
				if op, due := r.look(5*time.Second - 1); due {
					t.Fatalf("%+v before the second look is due", op)
				}
				r.proves(1, c.again, c.errAgain)
			}
			if c.applied < 20 {
				if op, due := r.look(attempt.DefaultBehind - 1); due {
					t.Fatalf("%+v while the member may still apply it", op)
				}
			}
			got := r.reports(1)
			if got.Proven != c.proven || got.Failed != c.failed || got.Damaged != c.damaged || !strings.Contains(got.Why, c.why) ||
				got.At == 0 || (got.Why == "") != (c.why == "") {
				t.Errorf("got %+v", got)
			}
			r.machine.Reported(r.now, context.DeadlineExceeded)
			if again := r.reports(time.Second); again != got {
				t.Errorf("a report that was lost is made again as %+v", again)
			}
			r.row = &kv.BackupRow{}
			if r.machine.Reported(r.now, nil); !r.machine.Rests() {
				t.Error("the try goes on")
			}
		})
	}
}

// Ensure that a try that is over reports nothing, and that the next one begins when its operation has ended.
func TestMachine_over(t *testing.T) {
	r := newRig(t)
	op, _ := r.look(0)
	r.row = &kv.BackupRow{Policy: kv.BackupPolicy{On: true}, Proofs: kv.BackupProofs{Number: 8, Member: 3}}
	if r.machine.Mine(&op, r.row) {
		t.Error("the try is taken for this member's")
	}
	if next, due := r.look(time.Second); due {
		t.Fatalf("%+v beside the former one", next)
	}
	r.machine.Proved(r.now, proof(20, 5), nil)
	if next, due := r.look(0); !due || next.Kind != attempt.Prove || next.Row.Proofs.Number != 8 {
		t.Errorf("%+v, %v", next, due)
	}
}

// Ensure that a second look goes by what was reported meanwhile: the first one may have taken so long that retention removed what
// was there when it began.
func TestMachine_secondLook(t *testing.T) {
	r := newRig(t)
	r.proves(0, nil, errDamage)
	next := *r.row
	next.Progress.Restorable.Index = 90
	r.row, r.applied = &next, 90
	op, due := r.look(5 * time.Second)
	if !due || op.Kind != attempt.Prove || op.Most() != 90 {
		t.Fatalf("%+v, %v", op, due)
	}
	r.machine.Proved(r.now, proof(89, 5), nil)
	if got := r.reports(0); !got.Failed || !strings.Contains(got.Why, "entry 90 was there") {
		t.Errorf("got %+v", got)
	}
}

// Ensure that no member looks at an encrypted place, and says who can prove it.
func TestMachine_encrypted(t *testing.T) {
	r := newRig(t)
	r.row.Policy.Recipients = "age1a"
	if got := r.reports(0); got.Failed || got.Proven || !strings.Contains(got.Why, "--identity") {
		t.Errorf("got %+v", got)
	}
}

// Ensure that a proof which is not whole says how many bases were not compared, beside what is damaged.
func TestMachine_left(t *testing.T) {
	r := newRig(t)
	found := proof(20, 5)
	found.Left = 2
	r.proves(time.Second, found, nil)
	if got := r.reports(0); !got.Proven || !strings.HasPrefix(got.Why, "2 bases not compared with the log") || got.Damaged != 0 {
		t.Errorf("got %+v", got)
	}
	r = newRig(t)
	found.Damaged = []error{errDamage}
	r.proves(time.Second, found, nil)
	r.proves(6*time.Second, found, nil)
	if got := r.reports(0); !strings.HasPrefix(got.Why, "2 bases not compared") || !strings.Contains(got.Why, "log/x") || got.Damaged != 1 {
		t.Errorf("with damage: %+v", got)
	}
	r = newRig(t)
	found = proof(20, 5)
	found.Apart, found.Unknown = 1, 3
	r.proves(time.Second, found, nil)
	if got := r.reports(0); !got.Proven || !strings.HasPrefix(got.Why, "1 base not compared with the log, which leads to another state there; "+
		"3 bases not looked at, since the cluster knows the last 64") {
		t.Errorf("apart and unknown: %+v", got)
	}
	r = newRig(t)
	found = proof(20, 5)
	found.Unknown = 1 // perhaps of a member that was killed: nobody is accused
	r.proves(time.Second, found, nil)
	if got := r.reports(0); !strings.HasPrefix(got.Why, "1 base not looked at, since no member has reported it: one that was killed") {
		t.Errorf("one unknown: %+v", got)
	}
	for holes, says := range map[int]string{0: "", 1: "1 gap in the log is explained by notes alone", 2: "2 gaps in the log are explained by notes alone"} {
		r = newRig(t)
		found = proof(20, 5)
		found.Holes, r.row.Progress.Gaps = holes, 9 // of all time: long proven
		r.proves(time.Second, found, nil)
		if got := r.reports(0); !got.Proven || got.Damaged > 0 || !strings.HasPrefix(got.Why, says) || (got.Why == "") != (holes == 0) {
			t.Errorf("%d notes of gaps: %+v", holes, got)
		}
	}
}

// Ensure that a proof begins at the last base that was proven, unless a base of an earlier entry was reported since then: then at
// the one before that, of those that were reported before.
func TestOp_After(t *testing.T) {
	for name, row := range map[string]struct {
		known []uint64 // indexes, in the order of the reports; hashes are their places, from 1 on
		from  byte
	}{
		"none since":                 {[]uint64{10, 20, 30}, 3},
		"later ones":                 {[]uint64{10, 20, 30, 40}, 3},
		"of the same entry":          {[]uint64{10, 20, 30, 30}, 3},
		"an earlier one":             {[]uint64{10, 20, 30, 25}, 2},
		"of an entry that was there": {[]uint64{10, 20, 30, 20}, 1},
		"two earlier ones":           {[]uint64{10, 20, 30, 25, 15}, 1},
		"none before it":             {[]uint64{10, 20, 30, 5}, 3},
		"before it, and later":       {[]uint64{20, 10, 30, 25, 40}, 1},
		"after the first of all":     {[]uint64{0, 20, 30, 10}, 1},
	} {
		op := attempt.Op{Row: &kv.BackupRow{}}
		for i, index := range row.known {
			op.Row.Known = append(op.Row.Known, kv.BackupBase{Index: index, Hash: backup.Hash{byte(i + 1)}})
		}
		op.Row.Proofs.Proven.Base = backup.Hash{3}
		if got := op.After(); got != (backup.Hash{row.from}) {
			t.Errorf("%s: got %v", name, got[0])
		}
		op.Row.Proofs.Proven.Base = backup.Hash{99} // the row has forgotten it
		if got := op.After(); got != (backup.Hash{99}) || !op.Known(got) {
			t.Errorf("%s: of one that is not known: got %v", name, got[0])
		}
	}
}
