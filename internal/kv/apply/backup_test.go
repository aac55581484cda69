package apply_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

func backupPolicy(generation uint64, place string, on bool) kv.Command {
	return kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupSet, Generation: generation, Policy: kv.BackupPolicy{On: on, Place: place,
		BaseSeconds: 3600, SealMillis: 1000}}}
}

// encryptedPolicy has recipients, and secrets of so many bytes.
func encryptedPolicy(generation uint64, recipients string, secret, former int) kv.Command {
	c := backupPolicy(generation, "file:///b", true)
	c.Backup.Policy.Recipients, c.Backup.Policy.Secret = recipients, strings.Repeat("s", secret)
	c.Backup.Policy.Former = strings.Repeat("f", former)
	return c
}

func backupTurn(turn, member uint64) kv.Command {
	return kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupAppoint, Turn: turn, Member: member}}
}

func backupReport(turn, member uint64, p kv.BackupProgress) kv.Command {
	return kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupReport, Turn: turn, Member: member, Progress: p}}
}

// newBackupBench is a member of a cluster at feature level 2, of one voter.
func newBackupBench(t *testing.T) *bench {
	b := &bench{t: t, fs: filestest.NewCrashableMem()}
	b.openEngine()
	config := consensus.Config{Voters: []consensus.MemberID{1}, Members: []consensus.Member{{ID: 1}}}
	if err := apply.Bootstrap(b.eng, 77, config); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.knows(1, level.Second)
	b.policy("now")
	if res := b.do(b.raise(level.Second)); res.Err != nil || b.m.ActiveLevel() != level.Second {
		t.Fatal(res.Err, b.m.ActiveLevel())
	}
	return b
}

// Ensure that below level 2 commands of the backup change nothing, and look as those that do not decode.
func TestMachine_Apply_backupBelowLevel(t *testing.T) {
	b := newBench(t)
	for _, cmd := range []kv.Command{backupPolicy(0, "file:///b", true), backupTurn(0, 1), backupReport(0, 1, kv.BackupProgress{})} {
		if res := b.do(cmd); !errors.Is(res.Err, kv.ErrBadCommand) {
			t.Errorf("got %v", res.Err)
		}
	}
	if diff := cmp.Diff(kv.BackupRow{}, *b.m.Backup()); diff != "" {
		t.Error(diff)
	}
}

// Ensure that a policy is replaced only by a caller that has seen it, that turns are never given twice, that only the member
// whose turn it is reports, and that the row outlives a restart.
func TestMachine_Apply_backup(t *testing.T) {
	b := newBackupBench(t)
	sealed := kv.BackupProgress{At: 5000, Restorable: kv.BackupPoint{Index: 9, Revision: 7, Time: 4900}, Sum: 77, Gaps: 2,
		Gap: kv.BackupGap{After: 3, Until: 5, Time: 4000}, Retention: kv.BackupRetention{At: 3000, From: 1, Bases: 4, Removed: 5,
			Bytes: 6, Why: "denied"}}
	long, invalid, growing := sealed, sealed, sealed
	growing.Retention.Why = strings.Repeat("x", kv.MaxBackupTroubleBytes+1)
	long.Trouble = strings.Repeat("x", kv.MaxBackupTroubleBytes+1)
	invalid.Trouble = "\xff"
	for _, step := range []struct {
		name string
		cmd  kv.Command
		want error
	}{
		{"a turn without a policy", backupTurn(0, 1), kv.ErrBadCommand},
		{"another generation", backupPolicy(1, "file:///b", true), kv.ErrBadCommand},
		{"no place", backupPolicy(0, "", true), kv.ErrBadCommand},
		{"recipients without a secret", encryptedPolicy(0, "age1a", 0, 0), kv.ErrBadCommand},
		{"a secret without recipients", encryptedPolicy(0, "", 32, 0), kv.ErrBadCommand},
		{"a short secret", encryptedPolicy(0, "age1a", 31, 0), kv.ErrBadCommand},
		{"half a former secret", encryptedPolicy(0, "age1a", 32, 16), kv.ErrBadCommand},
		{"five former secrets", encryptedPolicy(0, "age1a", 32, 5*32), kv.ErrBadCommand},
		{"recipients that are no text", encryptedPolicy(0, "\xff", 32, 0), kv.ErrBadCommand},
		{"many recipients", encryptedPolicy(0, strings.Repeat("x", kv.MaxBackupRecipientBytes+1), 32, 0), kv.ErrBadCommand},
		{"a long place", backupPolicy(0, strings.Repeat("x", kv.MaxBackupPlaceBytes+1), true), kv.ErrBadCommand},
		{"the first", backupPolicy(0, "file:///b", true), nil},
		{"the second of two", backupPolicy(0, "file:///c", true), kv.ErrBadCommand},
		{"a report without a turn", backupReport(1, 1, sealed), kv.ErrBadCommand},
		{"a report of nobody", backupReport(1, 0, sealed), kv.ErrBadCommand},
		{"nobody's turn", backupTurn(1, 0), kv.ErrBadCommand},
		{"a turn", backupTurn(1, 2), nil},
		{"the same turn again", backupTurn(1, 3), kv.ErrBadCommand},
		{"a report of another member", backupReport(2, 3, sealed), kv.ErrBadCommand},
		{"a report of another turn", backupReport(1, 2, sealed), kv.ErrBadCommand},
		{"a long report", backupReport(2, 2, long), kv.ErrBadCommand},
		{"a long reason", backupReport(2, 2, growing), kv.ErrBadCommand},
		{"one that is no text", backupReport(2, 2, invalid), kv.ErrBadCommand},
		{"a report", backupReport(2, 2, sealed), nil},
		{"the next turn", backupTurn(2, 3), nil},
		{"a late report", backupReport(2, 2, sealed), kv.ErrBadCommand},
		{"a report of less", backupReport(3, 3, kv.BackupProgress{At: 6000, Gaps: 1, Restorable: kv.BackupPoint{Index: 8, Time: 8}}), nil},
	} {
		b.want(step.name, b.do(step.cmd), kv.Result{Err: step.want, Revision: 1})
	}
	want := kv.BackupRow{Generation: 1, Policy: backupPolicy(0, "file:///b", true).Backup.Policy, Turn: 3, Member: 3, Reports: 2,
		TurnGaps: 1, Progress: sealed, Proofs: kv.BackupProofs{Number: 1},
		KnownGaps: []kv.BackupGap{sealed.Gap}}
	want.Progress.At, want.Progress.Gaps = 6000, 3
	want.Progress.Retention.Why = "" // the member whose turn it is finds nothing
	if diff := cmp.Diff(want, *b.m.Backup()); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	b.flush()
	b.open()
	if diff := cmp.Diff(want, *b.m.Backup()); diff != "" {
		t.Errorf("after a restart: want -, got +\n%s", diff)
	}
	b.do(backupPolicy(1, "file:///b", false))
	if got := b.m.Backup(); got.Member != 0 || got.Turn != 4 || got.Progress != want.Progress {
		t.Errorf("stopped: %+v", got)
	}
	if res := b.do(backupTurn(4, 2)); !errors.Is(res.Err, kv.ErrBadCommand) {
		t.Errorf("a turn of a backup that is off: %v", res.Err)
	}
	b.do(backupPolicy(2, "file:///c", true))
	if got := b.m.Backup(); got.Progress != (kv.BackupProgress{}) || got.Turn != 5 {
		t.Errorf("another place: %+v", got)
	}
	for generation, step := range []struct {
		recipients string
		secret     int
		kept       bool
	}{{"age1a", 32, false}, {"age1a", 32, true}, {"age1a age1b", 32, true}, {"", 0, false}} { // the secret counts
		policy := encryptedPolicy(uint64(generation)+3, step.recipients, step.secret, 0)
		policy.Backup.Policy.Place = "file:///c"
		b.do(policy)
		if got := b.m.Backup(); (got.Progress != kv.BackupProgress{}) != step.kept || got.Policy != policy.Backup.Policy {
			t.Errorf("%+v: %+v", step, got)
		}
		turn := b.m.Backup().Turn
		b.do(backupTurn(turn, 2))
		b.do(backupReport(turn+1, 2, sealed))
	}
}

// Ensure that a refusal of a place is that of one turn: neither the next one nor another policy has it.
func TestMachine_Apply_backupRefused(t *testing.T) {
	b := newBackupBench(t)
	b.do(backupPolicy(0, "file:///b", true))
	refuses := kv.BackupProgress{At: 1, Trouble: "not allowed", Refused: true}
	for i, after := range []kv.Command{backupTurn(2, 3), backupPolicy(1, "file:///b", true)} {
		turn := b.m.Backup().Turn
		for _, cmd := range []kv.Command{backupTurn(turn, 2), backupReport(turn+1, 2, refuses)} {
			if res := b.do(cmd); res.Err != nil {
				t.Fatal(res.Err)
			}
		}
		if !b.m.Backup().Progress.Refused {
			t.Errorf("%d: not refused", i)
		}
		if res := b.do(after); res.Err != nil || b.m.Backup().Progress.Refused {
			t.Errorf("%d: %v, %+v", i, res.Err, b.m.Backup())
		}
	}
}

// Ensure that, with users, root alone sets the policy; members give turns and report; and that no alarm stops any of it.
func TestMachine_Apply_backupPermit(t *testing.T) {
	b := newBackupBench(t)
	for _, kind := range []kv.AlarmKind{kv.AlarmNoSpace, kv.AlarmCorrupt} {
		b.do(kv.Command{Alarm: &kv.AlarmOp{Activate: true, Member: 1, Kind: kind}})
	}
	for _, change := range []auth.Change{{Kind: auth.UserAdd, User: "root", Hash: []byte("h")},
		{Kind: auth.UserGrantRole, User: "root", Role: "root"}, {Kind: auth.Enable, Secret: make([]byte, 32)}} {
		if res := b.do(kv.Command{Auth: &change}); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	policy := backupPolicy(0, "file:///b", true)
	if res := b.do(policy); !errors.Is(res.Err, auth.ErrUserEmpty) {
		t.Errorf("without a user: %v", res.Err)
	}
	policy.By = auth.Credentials{User: "root", Revision: b.m.Users().Revision()}
	claim := backupClaim(1, kv.BackupProof{At: 1, Failed: true})
	if res := b.do(claim); !errors.Is(res.Err, auth.ErrUserEmpty) {
		t.Errorf("a claim without a user: %v", res.Err)
	}
	claim.By = policy.By
	for _, cmd := range []kv.Command{policy, backupTurn(1, 2), backupReport(2, 2, kv.BackupProgress{At: 1}), backupProve(1, 3, 5),
		backupProved(2, 3, kv.BackupProof{At: 6}), claim} {
		if res := b.do(cmd); res.Err != nil {
			t.Errorf("%+v: %v", cmd.Backup, res.Err)
		}
	}
}
