package apply_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/kv"
)

func backupProve(number, member uint64, at int64) kv.Command {
	return kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupProve, Turn: number, Member: member, Proof: kv.BackupProof{At: at}}}
}

func backupProved(number, member uint64, p kv.BackupProof) kv.Command {
	return kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupProved, Turn: number, Member: member, Proof: p}}
}

func backupClaim(generation uint64, p kv.BackupProof) kv.Command {
	return kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupClaim, Generation: generation, Proof: p}}
}

// Ensure that only the member that was appointed says how a try to prove the backup ended, once; that the last proof stays when
// a later try fails; and that a policy ends a try, and another place all that was proven.
func TestMachine_Apply_backupProofs(t *testing.T) {
	b := newBackupBench(t)
	proven := kv.BackupProof{At: 7000, Took: 900, Proven: true, Point: kv.BackupPoint{Index: 9, Revision: 7, Time: 6000}, Bases: 2,
		Base: [32]byte{1}, Member: 99, By: "mallory"} // the row names the member that was appointed
	failed := kv.BackupProof{At: 9000, Failed: true, Why: "object log/1"}
	both, long, none := proven, failed, proven
	both.Failed, long.Why, none.At = true, strings.Repeat("x", kv.MaxBackupProofBytes+1), 0
	b.do(backupPolicy(0, "file:///b", true))
	for _, step := range []struct {
		name string
		cmd  kv.Command
		want error
	}{
		{"another number", backupProve(2, 3, 1000), kv.ErrBadCommand},
		{"nobody", backupProve(1, 0, 1000), kv.ErrBadCommand},
		{"an end without a try", backupProved(1, 3, proven), kv.ErrBadCommand},
		{"a try", backupProve(1, 3, 1000), nil},
		{"the same again", backupProve(1, 2, 1000), kv.ErrBadCommand},
		{"an end of another member", backupProved(2, 2, proven), kv.ErrBadCommand},
		{"an end of another try", backupProved(1, 3, proven), kv.ErrBadCommand},
		{"proven and failed", backupProved(2, 3, both), kv.ErrBadCommand},
		{"without a time", backupProved(2, 3, none), kv.ErrBadCommand},
		{"too long", backupProved(2, 3, long), kv.ErrBadCommand},
		{"proven", backupProved(2, 3, proven), nil},
		{"proven twice", backupProved(2, 3, proven), kv.ErrBadCommand},
		{"the next try", backupProve(2, 2, 8000), nil},
		{"one that takes its place", backupProve(3, 3, 8500), nil},
		{"a late end", backupProved(3, 2, proven), kv.ErrBadCommand},
		{"failed", backupProved(4, 3, failed), nil},
	} {
		if res := b.do(step.cmd); !errors.Is(res.Err, step.want) || res.Revision != 1 {
			t.Errorf("%s: %+v", step.name, res)
		}
	}
	proven.Member, proven.By, failed.Member = 3, "", 3
	want := kv.BackupProofs{Number: 4, Generation: 1, Last: failed, Proven: proven}
	b.shows("failed", want)
	b.flush()
	b.open()
	b.shows("after a restart", want)
	b.do(backupProve(4, 2, 9500))
	b.do(backupPolicy(1, "file:///b", false))
	want.Number = 6
	b.shows("stopped", want)
	if res := b.do(backupProve(6, 2, 9500)); !errors.Is(res.Err, kv.ErrBadCommand) {
		t.Errorf("a try while the backup is off: %v", res.Err)
	}
	claimed := kv.BackupProof{At: 9900, By: "root", Proven: true, Point: kv.BackupPoint{Index: 20, Revision: 9}, Member: 2}
	if res := b.do(backupClaim(1, claimed)); !errors.Is(res.Err, kv.ErrBadCommand) {
		t.Errorf("a claim for another policy: %v", res.Err)
	}
	b.do(backupClaim(2, claimed))
	claimed.Member, claimed.By = 0, "" // the user of the command: there are no users
	want.Last = claimed
	claimed.Base = proven.Base
	want.Proven = claimed
	b.shows("claimed", want)
	b.do(backupPolicy(2, "file:///c", true))
	b.shows("another place", kv.BackupProofs{Number: 7})
}

func (b *bench) shows(when string, want kv.BackupProofs) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.m.Backup().Proofs); diff != "" {
		b.t.Errorf("%s: want -, got +\n%s", when, diff)
	}
}
