package kv_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
)

// commands has every operation, every flag and every union arm at least once.
func commands() map[string]kv.Command {
	pair := func(s string) []byte { return []byte(s) }
	txn := &kv.TxnOp{
		Compares: []kv.Compare{
			{Key: pair("a"), Target: kv.CompareValue, Result: kv.CompareNotEqual, Value: pair("v")},
			{Key: pair("a"), End: pair("b"), Target: kv.CompareLease, Number: -7},
		},
		Then: []kv.Op{
			{Put: &kv.PutOp{Key: pair("a"), Value: pair("1"), Lease: 9}},
			{Range: &kv.RangeOp{Key: pair("a"), End: []byte{0}, Limit: 3, Revision: 12, Order: kv.SortDescend,
				Target: kv.SortByMod, KeysOnly: true, CountOnly: true, MinMod: 1, MaxMod: 2, MinCreate: 3, MaxCreate: 4}},
		},
		Else: []kv.Op{
			{Delete: &kv.DeleteOp{Key: pair("x"), End: pair("y"), PrevKV: true}},
			{Txn: &kv.TxnOp{Then: []kv.Op{{Range: &kv.RangeOp{Key: pair("q")}}}}},
			{Txn: &kv.TxnOp{}},
		},
	}
	return map[string]kv.Command{
		"put":          {Put: &kv.PutOp{Key: pair("k"), Value: pair("v")}},
		"put, all set": {Put: &kv.PutOp{Key: pair("k"), Lease: -3, PrevKV: true, IgnoreValue: true, IgnoreLease: true}},
		"delete":       {Delete: &kv.DeleteOp{Key: pair("k")}},
		"txn":          {Txn: txn},
		"empty txn":    {Txn: &kv.TxnOp{}},
		"compact":      {Compact: &kv.CompactOp{Revision: 1 << 40}},
		"lease grant":  {LeaseGrant: &kv.LeaseGrantOp{ID: -1 << 63, TTLSeconds: kv.MaxLeaseTTLSeconds}},
		"lease revoke": {LeaseRevoke: &kv.LeaseRevokeOp{ID: 1<<63 - 1, Term: 1<<64 - 1}},
		"alarm":        {Alarm: &kv.AlarmOp{Activate: true, Member: 1 << 63, Kind: kv.AlarmCorrupt}},
		"publish":      {Publish: &kv.PublishOp{Member: 1, Name: "n", ClientURLs: []string{"u", ""}, Version: "3"}},
		"publish all": {Publish: &kv.PublishOp{Member: 1, Name: "n", ClientURLs: []string{"u"}, Version: "3",
			Build: "0.1.0", Level: 255}},
		"raise":        {Raise: &kv.RaiseOp{Level: 255}},
		"finalize":     {Raise: &kv.RaiseOp{Level: 2, Finalize: true, Of: kv.LevelView{Config: 1 << 40, IDs: []uint64{1, 1 << 63}}}},
		"soak":         {Soak: &kv.SoakOp{Level: 255, Seconds: 1<<31 - 1, Of: kv.LevelView{IDs: []uint64{3}}}},
		"level policy": {LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicySoak, Seconds: 1<<31 - 1}}},
		"first policy": {LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicyNow}, Initial: true,
			Of: kv.LevelView{Config: 7, IDs: []uint64{1, 2}, Generation: 1 << 63}}},
		"downgrade": {LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicyHold},
			Target: level.Release{Major: 1<<32 - 1, Minor: 1<<32 - 1}, Of: kv.LevelView{Generation: 300}}},
		"limit": {Limit: &kv.LimitOp{Set: &kv.LimitRule{Name: "n", User: "u", Prefixed: true, Prefix: pair("p"),
			Bounds: [kv.LimitKinds]kv.Bound{{Set: true}, {Set: true, Most: 1}, {}, {Set: true, Most: 1<<63 - 1}}}}},
		"no limit":     {Limit: &kv.LimitOp{Delete: "n"}},
		"limit count":  {Limit: &kv.LimitOp{Count: "n", From: pair("k")}},
		"returned":     {LevelPolicy: &kv.LevelPolicyOp{Returned: true, Of: kv.LevelView{Config: 7, IDs: []uint64{1}}}},
		"session open": {SessionOpen: &kv.SessionOpenOp{Member: 1, Number: 2, Keep: []uint64{3, 1 << 63}}},
		"job":          {Job: &kv.JobOp{ID: 1 << 63, Version: 1<<64 - 1, Body: pair("b"), Prune: []uint64{1, 1 << 63}}},
		"new job":      {Job: &kv.JobOp{ID: 1, Body: pair("{}")}},
		"in a name": {Put: &kv.PutOp{Key: pair("k"), Value: pair("v")},
			By: auth.Credentials{User: "alice", Revision: 1 << 63}},
		"by a member": {Compact: &kv.CompactOp{Revision: 1}, By: auth.Credentials{Member: true}},
		"auth": {Auth: &auth.Change{Kind: auth.UserAdd, User: "u", Role: "r", Hash: pair("h"), NoPassword: true, Secret: pair("s"),
			Permission: auth.Permission{Access: auth.ReadWrite, Key: pair("k"), End: pair("l")}},
			By: auth.Credentials{User: "root", Revision: 7}},
		"join token": {Auth: &auth.Change{Kind: auth.JoinTokenUse, Now: 9, Newcomer: [32]byte{1}, Token: &auth.JoinToken{
			ID: "0000000a", Hash: [32]byte{2}, Expires: 1 << 62, Uses: 3, Owner: "root"}}, By: auth.Credentials{Member: true}},
		"audit policy": {Audit: &kv.AuditOp{Kind: kv.AuditPolicy, Policy: pair("{}"), Version: 1 << 63},
			By: auth.Credentials{User: "root", Revision: 7}},
		"audit head": {Audit: &kv.AuditOp{Kind: kv.AuditHead, Head: kv.AuditHeadRow{Member: 1 << 63, Chain: 1<<64 - 1, Sequence: 300,
			At: -1, Sum: pair("0123456789abcdef01234567"), File: pair("audit.log")}}},
		"backup policy": {Backup: &kv.BackupOp{Kind: kv.BackupSet, Generation: 1 << 63, Policy: kv.BackupPolicy{On: true,
			Place: "s3://b/p", Keep: "7d", BaseSeconds: 1 << 40, SealMillis: -1, VerifySeconds: -1, Since: -1,
			Recipients: "age1a age1b", Secret: "s", Former: "f"}},
			By: auth.Credentials{User: "root", Revision: 7}},
		"backup turn": {Backup: &kv.BackupOp{Kind: kv.BackupAppoint, Turn: 300, Member: 1 << 63}},
		"backup report": {Backup: &kv.BackupOp{Kind: kv.BackupReport, Turn: 301, Member: 1 << 63, Progress: kv.BackupProgress{At: -1,
			Restorable: kv.BackupPoint{Index: 1 << 63, Revision: 300, Time: 400}, Sum: 1<<64 - 1,
			Base:     kv.BackupPoint{Index: 7, Revision: 8, Time: 9},
			BaseHash: [32]byte{1, 31: 2}, Gaps: 300, Gap: kv.BackupGap{After: 5, Until: 1 << 63, Time: 2}, Trouble: "t"}}},
		"backup refused": {Backup: &kv.BackupOp{Kind: kv.BackupReport, Turn: 301, Member: 1, Progress: kv.BackupProgress{At: 1,
			Refused: true, Trouble: "t"}}},
		"backup to prove": {Backup: &kv.BackupOp{Kind: kv.BackupProve, Turn: 302, Member: 1 << 63, Proof: kv.BackupProof{At: -1}}},
		"backup proved":   {Backup: &kv.BackupOp{Kind: kv.BackupProved, Turn: 303, Member: 1 << 63, Proof: backupProof()}},
		"backup claimed": {Backup: &kv.BackupOp{Kind: kv.BackupClaim, Generation: 1 << 63, Proof: backupProof()},
			By: auth.Credentials{User: "root", Revision: 7}},
		"session leave": {SessionRetire: &kv.SessionRetireOp{Member: 1, Number: 2}},
	}
}

func backupProof() kv.BackupProof {
	return kv.BackupProof{At: -1, Took: 300, Member: 1 << 63, By: "root", Proven: true, Failed: true, Bases: 300, Entries: 1 << 63,
		Point: kv.BackupPoint{Index: 1 << 63, Revision: 300, Time: 400}, Base: [32]byte{31: 7}, Damaged: 300, Why: "w"}
}

func results() map[string]kv.Result {
	pair := kv.KeyValue{Key: []byte("k"), Value: []byte("v"), CreateRevision: 2, ModRevision: 9, Version: 3, Lease: -4}
	return map[string]kv.Result{
		"nothing":      {Revision: 3},
		"put":          {Revision: 3, Put: &kv.PutResult{}},
		"put and prev": {Revision: 3, Put: &kv.PutResult{Prev: &pair}},
		"delete":       {Revision: 3, Delete: &kv.DeleteResult{Deleted: 2, Prevs: []kv.KeyValue{pair, pair}}},
		"lease":        {Revision: 3, Lease: &kv.LeaseResult{ID: -4, TTLSeconds: 60}},
		"alarms":       {Revision: 3, Alarms: []kv.Alarm{{Member: 1 << 63, Kind: kv.AlarmNoSpace}}},
		"rejection":    {Revision: 3, Err: kv.ErrLeaseNotFound},
		"txn": {Revision: 3, Txn: &kv.TxnResult{Succeeded: true, Responses: []kv.OpResult{
			{Revision: 3, Range: &kv.RangeResult{KVs: []kv.KeyValue{pair}, More: true, Count: 5}},
			{Revision: 3, Put: &kv.PutResult{Prev: &pair}},
			{Revision: 3, Put: &kv.PutResult{}},
			{Revision: 3, Delete: &kv.DeleteResult{}},
			{Txn: &kv.TxnResult{Responses: []kv.OpResult{{}}}},
		}}},
	}
}

func TestCommand_Append_round_trip(t *testing.T) {
	for name, want := range commands() {
		t.Run(name, func(t *testing.T) {
			encoded := want.Append([]byte("before"))[len("before"):]
			got, err := kv.DecodeCommand(encoded)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("want -, got +\n%s", diff)
			}
			for n := range encoded {
				if _, err := kv.DecodeCommand(encoded[:n]); !errors.Is(err, kv.ErrBadCommand) {
					t.Fatalf("the first %d of %d bytes decode: %v", n, len(encoded), err)
				}
			}
			if _, err := kv.DecodeCommand(append(encoded, 0)); !errors.Is(err, kv.ErrBadCommand) {
				t.Fatalf("a byte too many decodes: %v", err)
			}
		})
	}
}

// Ensure that a Decoder reads the same as DecodeCommand, whatever it read before.
func TestDecoder_Decode(t *testing.T) {
	var d kv.Decoder
	full := kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: []byte("v"), Lease: 7, PrevKV: true}}
	for name, want := range commands() {
		for _, command := range []kv.Command{full, want} {
			got, err := d.Decode(command.Append(nil))
			if diff := cmp.Diff(command, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Fatalf("%s: %v; want -, got +\n%s", name, err, diff)
			}
		}
	}
	if _, err := d.Decode([]byte{1, 1}); !errors.Is(err, kv.ErrBadCommand) {
		t.Errorf("half a put decodes: %v", err)
	}
}

// Ensure that each field that a member publishes is encoded and decoded by itself.
func TestPublishOp_Append(t *testing.T) {
	for _, op := range []kv.PublishOp{
		{Member: 1}, {Name: "n"}, {ClientURLs: []string{"u", ""}}, {Version: "3.7.1"}, {Zone: "r7"}, {Build: "0.1.0"}, {Level: 255}, {Memory: 512 << 20},
	} {
		got, err := kv.DecodeCommand((&kv.Command{Publish: &op}).Append(nil))
		if err != nil || !reflect.DeepEqual(got.Publish, &op) {
			t.Errorf("%+v: got %+v, %v", op, got.Publish, err)
		}
	}
}

func TestResult_Append_round_trip(t *testing.T) {
	for name, want := range results() {
		t.Run(name, func(t *testing.T) {
			encoded := want.Append(nil)
			got, err := kv.DecodeResult(encoded)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("want -, got +\n%s", diff)
			}
			for n := range encoded {
				if _, err := kv.DecodeResult(encoded[:n]); !errors.Is(err, kv.ErrBadResult) {
					t.Fatalf("the first %d of %d bytes decode: %v", n, len(encoded), err)
				}
			}
		})
	}
}

func TestResult_Append_common_put_is_small(t *testing.T) {
	res := kv.Result{Revision: 100_000_000, Put: &kv.PutResult{}}
	if got := len(res.Append(nil)); got > 6 {
		t.Fatalf("a plain put takes %d bytes in the result table, want at most 6", got)
	}
}

func TestResult_Append_every_rejection(t *testing.T) {
	for _, want := range []error{
		kv.ErrCompacted, kv.ErrFutureRevision, kv.ErrKeyNotFound, kv.ErrLeaseNotFound, kv.ErrLeaseExists,
		kv.ErrLeaseTTLTooBig, kv.ErrNoSpace, kv.ErrCorrupt, kv.ErrSessionUnknown, kv.ErrBadCommand, kv.ErrSkipped,
		kv.ErrDeposed, kv.ErrJobExists, kv.ErrJobConflict, kv.ErrAborted,
	} {
		res := kv.Result{Err: want}
		if got, err := kv.DecodeResult(res.Append(nil)); err != nil || got.Err != want {
			t.Errorf("%v came back as %v, %v", want, got.Err, err)
		}
	}
}

// The numbers of rejections are on disk and in messages between members of different versions.
func TestResult_Append_rejections_keep_their_numbers(t *testing.T) {
	for want, err := range map[byte]error{1: kv.ErrCompacted, 11: kv.ErrSkipped, 14: kv.ErrJobConflict, 15: kv.ErrAborted,
		16: auth.ErrRootUserNotExist, 24: auth.ErrPermissionDenied, 31: auth.ErrTooLarge, 36: auth.ErrTooManyTokens, 37: kv.ErrLooksTooFar, 38: kv.ErrOverQuota,
		39: kv.ErrLimitNotFound, 40: kv.ErrTooManyLimits, 41: kv.ErrHeadBehind, 42: kv.ErrTooManyHeads} {
		res := kv.Result{Err: err}
		if encoded := res.Append(nil); encoded[len(encoded)-1] != want {
			t.Errorf("%v has number %d, want %d", err, encoded[len(encoded)-1], want)
		}
	}
	unknown := kv.Result{Err: kv.ErrTooManyHeads}
	encoded := unknown.Append(nil)
	encoded[len(encoded)-1]++
	if _, err := kv.DecodeResult(encoded); !errors.Is(err, kv.ErrBadResult) {
		t.Errorf("a rejection of a later version decodes: %v", err)
	}
}

func TestDecodeCommand_bounds(t *testing.T) {
	deep := kv.Command{Txn: &kv.TxnOp{}}
	for i := 1; i < kv.MaxTxnDepth; i++ {
		deep = kv.Command{Txn: &kv.TxnOp{Then: []kv.Op{{Txn: deep.Txn}}}}
	}
	if _, err := kv.DecodeCommand(deep.Append(nil)); err != nil {
		t.Fatalf("the deepest legal nesting: %v", err)
	}
	deep = kv.Command{Txn: &kv.TxnOp{Else: []kv.Op{{Txn: deep.Txn}}}}
	if _, err := kv.DecodeCommand(deep.Append(nil)); !errors.Is(err, kv.ErrBadCommand) {
		t.Fatalf("one level too deep: %v", err)
	}
	huge := []byte{1, 3, 0xff, 0xff, 0xff, 0xff, 0x0f} // a txn of four billion compares, in seven bytes
	if _, err := kv.DecodeCommand(huge); !errors.Is(err, kv.ErrBadCommand) {
		t.Fatalf("a count beyond the input: %v", err)
	}
}

func TestIsJob(t *testing.T) {
	for name, c := range commands() {
		if got, want := kv.IsJob(c.Append(nil)), c.Job != nil; got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if kv.IsJob(nil) || kv.IsJob([]byte{1}) {
		t.Error("bytes that are too short for a command pass for a job")
	}
}

func TestFootprint_Conflicts(t *testing.T) {
	put := func(key string) kv.Command { return kv.Command{Put: &kv.PutOp{Key: []byte(key)}} }
	del := func(key, end string) kv.Command {
		return kv.Command{Delete: &kv.DeleteOp{Key: []byte(key), End: []byte(end)}}
	}
	txn := func(op kv.TxnOp) kv.Command { return kv.Command{Txn: &op} }
	grant := func(id kv.LeaseID) kv.Command { return kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: id}} }
	cases := []struct {
		name string
		a, b kv.Command
		want bool
	}{
		{"different keys commute", put("a"), put("b"), false},
		{"the same key does not", put("a"), put("a"), true},
		{"a key is not its prefix", put("a"), put("a\x00"), false},
		{"a range meets a key inside", del("a", "c"), put("b"), true},
		{"a range ends before its end", del("a", "c"), put("c"), false},
		{"an open range meets all behind it", del("b", "\x00"), put("z"), true},
		{"a compare reads", txn(kv.TxnOp{Compares: []kv.Compare{{Key: []byte("a")}}}), put("a"), true},
		{"the branch not taken counts", txn(kv.TxnOp{Else: []kv.Op{{Put: put("a").Put}}}), put("a"), true},
		{"a nested txn counts", txn(kv.TxnOp{Then: []kv.Op{{Txn: &kv.TxnOp{
			Then: []kv.Op{{Range: &kv.RangeOp{Key: []byte("a"), End: []byte("m")}}}}}}}), put("b"), true},
		{"a grant meets a put under its lease", grant(5), kv.Command{Put: &kv.PutOp{Key: []byte("a"), Lease: 5}}, true},
		{"grants of different leases commute", grant(5), grant(6), false},
		{"a revoke is a barrier", kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 5}}, put("a"), true},
		{"the end of a session meets no key", kv.Command{SessionRetire: &kv.SessionRetireOp{Member: 5, Number: 1}}, put("a"), false},
		{"nor does the beginning of one", kv.Command{SessionOpen: &kv.SessionOpenOp{Member: 5, Number: 1}}, put("a"), false},
		{"a job is a barrier", kv.Command{Job: &kv.JobOp{ID: 5}}, put("a"), true},
		{"a compaction is a barrier", put("a"), kv.Command{Compact: &kv.CompactOp{}}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, b := kv.FootprintOf(&c.a), kv.FootprintOf(&c.b)
			if got := a.Conflicts(&b); got != c.want {
				t.Errorf("Conflicts = %v, want %v", got, c.want)
			}
			if got := b.Conflicts(&a); got != c.want {
				t.Errorf("the other way round: %v, want %v", got, c.want)
			}
		})
	}
}

func FuzzDecodeCommand(f *testing.F) {
	for _, c := range commands() {
		f.Add(c.Append(nil))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		first, err := kv.DecodeCommand(src)
		if err != nil {
			return
		}
		again := first.Append(nil)
		second, err := kv.DecodeCommand(again)
		if err != nil {
			t.Fatalf("encoded again, it does not decode: %v", err)
		}
		if !reflect.DeepEqual(first, second) || !bytes.Equal(again, second.Append(nil)) {
			t.Fatalf("changed by a round trip: %+v, %+v", first, second)
		}
		kv.FootprintOf(&first)
	})
}

func FuzzDecodeResult(f *testing.F) {
	for _, res := range results() {
		f.Add(res.Append(nil))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		first, err := kv.DecodeResult(src)
		if err != nil {
			return
		}
		second, err := kv.DecodeResult(first.Append(nil))
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("changed by a round trip: %+v, %+v, %v", first, second, err)
		}
	})
}

func BenchmarkCommand_codec(b *testing.B) {
	put := kv.Command{Put: &kv.PutOp{Key: bytes.Repeat([]byte("k"), 16), Value: bytes.Repeat([]byte("v"), 256)}}
	buf := put.Append(nil)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = put.Append(buf[:0])
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := kv.DecodeCommand(buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func ExampleFootprintOf() {
	write := kv.Command{Put: &kv.PutOp{Key: []byte("stock/7"), Value: []byte("3")}}
	sweep := kv.Command{Delete: &kv.DeleteOp{Key: []byte("stock/"), End: []byte("stock0")}}
	other := kv.Command{Put: &kv.PutOp{Key: []byte("order/1")}}
	a, b, c := kv.FootprintOf(&write), kv.FootprintOf(&sweep), kv.FootprintOf(&other)
	fmt.Println(a.Conflicts(&b), a.Conflicts(&c))
	// Output: true false
}
