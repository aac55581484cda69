package apply_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

func job(id, version uint64, body string, prune ...uint64) kv.Command {
	return kv.Command{Job: &kv.JobOp{ID: id, Version: version, Body: []byte(body), Prune: prune}}
}

func (b *bench) wantJobs(want ...apply.Job) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.m.Jobs()); diff != "" {
		b.t.Errorf("jobs: want -, got +\n%s", diff)
	}
}

func TestMachine_writeJob_swapsOnlyWhatIsAsBelieved(t *testing.T) {
	b := newBench(t)
	for _, step := range []struct {
		name string
		cmd  kv.Command
		want error
	}{
		{"there is nothing to replace", job(7, 1, "x"), kv.ErrJobConflict},
		{"create", job(7, 0, "queued"), nil},
		{"create another, before it in order", job(3, 0, "queued"), nil},
		{"create it again", job(7, 0, "x"), kv.ErrJobExists},
		{"the first of two drivers", job(7, 1, "running"), nil},
		{"the second of two drivers", job(7, 1, "x"), kv.ErrJobConflict},
		{"a version from the future", job(7, 9, "x"), kv.ErrJobConflict},
		{"no id", job(0, 0, "x"), kv.ErrBadCommand},
		{"a body that is too large", job(8, 0, string(make([]byte, kv.MaxJobBytes+1))), kv.ErrBadCommand},
		{"a job that prunes itself", job(7, 2, "x", 7), kv.ErrBadCommand},
		{"a conflict prunes nothing", job(7, 1, "x", 3), kv.ErrJobConflict},
	} {
		b.want(step.name, b.do(step.cmd), kv.Result{Err: step.want, Revision: 1})
	}
	b.wantJobs(apply.Job{ID: 3, Version: 1, Body: []byte("queued")}, apply.Job{ID: 7, Version: 2, Body: []byte("running")})
}

func TestMachine_writeJob_prunesWithTheWrite(t *testing.T) {
	b := newBench(t)
	for id := uint64(1); id <= 3; id++ {
		b.do(job(id, 0, "done"))
	}
	before := b.m.Jobs()
	b.want("prune", b.do(job(4, 0, "queued", 1, 3, 99)), kv.Result{Revision: 1})
	want := []apply.Job{{ID: 2, Version: 1, Body: []byte("done")}, {ID: 4, Version: 1, Body: []byte("queued")}}
	b.wantJobs(want...)
	if len(before) != 3 || before[0].ID != 1 || before[2].ID != 3 {
		t.Errorf("a list that a reader holds was changed: %v", before)
	}
	b.flush()
	b.open()
	b.wantJobs(want...)
	b.want("a pruned id may come again", b.do(job(1, 0, "queued")), kv.Result{Revision: 1})
}

func TestMachine_writeJob_needsNoSpaceAndNoRevision(t *testing.T) {
	b := newBench(t)
	for _, kind := range []kv.AlarmKind{kv.AlarmNoSpace, kv.AlarmCorrupt} {
		b.do(kv.Command{Alarm: &kv.AlarmOp{Activate: true, Member: 1, Kind: kind}})
	}
	b.want("a job under alarms", b.do(job(1, 0, "replace")), kv.Result{Revision: 1})
}

func TestMachine_Jobs_ownTheirBodies(t *testing.T) {
	b := newBench(t)
	e := b.entry(job(1, 0, "body"))
	b.apply(*e)
	copy(e.Payload, bytes.Repeat([]byte{0xff}, len(e.Payload))) // the log may reuse its memory
	b.wantJobs(apply.Job{ID: 1, Version: 1, Body: []byte("body")})
}
