package golden_test

import (
	"fmt"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/test/golden/frozen"
)

// named is a value that has a binary form of its own.
type named[T any] struct {
	name  string
	value T
}

// commands has each kind of command, with each field set at least once.
func commands() []named[kv.Command] {
	return append([]named[kv.Command]{
		{"put", kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: []byte("v")}}},
		{"put, all set", kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: []byte("v"), Lease: -3, PrevKV: true, IgnoreValue: true,
			IgnoreLease: true}}},
		{"delete", kv.Command{Delete: &kv.DeleteOp{Key: []byte("k"), End: []byte("l"), PrevKV: true}}},
		{"transaction", kv.Command{Txn: transaction()}},
		{"compact", kv.Command{Compact: &kv.CompactOp{Revision: 1 << 40}}},
		{"lease grant", kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: -1 << 63, TTLSeconds: kv.MaxLeaseTTLSeconds}}},
		{"lease revoke", kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 1<<63 - 1, Term: 1<<64 - 1}}},
		{"alarm", kv.Command{Alarm: &kv.AlarmOp{Activate: true, Member: 1 << 63, Kind: kv.AlarmCorrupt}}},
		{"publish", kv.Command{Publish: &kv.PublishOp{Member: 1, Name: "m1", ClientURLs: []string{"http://a:1", ""}, Version: "3.7.1",
			Zone: "r7", Build: "0.1.0", Level: 255, Memory: 512 << 20}}},
		{"session open", kv.Command{SessionOpen: &kv.SessionOpenOp{Member: 1, Number: 1 << 32, Keep: []uint64{3, 1 << 63}}}},
		{"session retire", kv.Command{SessionRetire: &kv.SessionRetireOp{Member: 1, Number: 1 << 32}}},
		{"job", kv.Command{Job: &kv.JobOp{ID: 1 << 63, Version: 300, Body: []byte("{}"), Prune: []uint64{1, 300}}}},
		{"raise", kv.Command{Raise: &kv.RaiseOp{Level: 2, Of: kv.LevelView{IDs: []uint64{1, 2, 3}}}}},
		{"raise, on an operator's word", kv.Command{Raise: &kv.RaiseOp{Level: 255, Finalize: true,
			Of: kv.LevelView{Config: 1 << 40, IDs: []uint64{1 << 63}}}}},
		{"level policy", kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicySoak, Seconds: 86400},
			Of: kv.LevelView{Generation: 300}}}},
		{"level policy, the first", kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicyHold},
			Initial: true, Of: kv.LevelView{Config: 7, IDs: []uint64{1, 2}}}}},
		{"level policy, a downgrade", kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicyHold},
			Target: level.Release{Major: 1, Minor: 300}, Of: kv.LevelView{Generation: 2}}}},
		{"level policy, after a downgrade", kv.Command{LevelPolicy: &kv.LevelPolicyOp{Returned: true,
			Of: kv.LevelView{Config: 7, IDs: []uint64{1, 2}}}}},
		{"limit of a user", kv.Command{Limit: &kv.LimitOp{Set: &kv.LimitRule{Name: "batch", User: "bob",
			Bounds: [kv.LimitKinds]kv.Bound{kv.LimitWrites: {Set: true, Most: 100}, kv.LimitReadBytes: {Set: true}}}}}},
		{"limit of a prefix", kv.Command{Limit: &kv.LimitOp{Set: &kv.LimitRule{Name: "q", Prefixed: true, Prefix: []byte("p/"),
			Bounds: [kv.LimitKinds]kv.Bound{kv.LimitQuotaBytes: {Set: true, Most: 1 << 40}, kv.LimitQuotaKeys: {Set: true, Most: 7}}}}}},
		{"limit deleted", kv.Command{Limit: &kv.LimitOp{Delete: "batch"}}},
		{"limit counted", kv.Command{Limit: &kv.LimitOp{Count: "q", From: []byte("p/")}}},
		{"soak", kv.Command{Soak: &kv.SoakOp{Level: 2, Seconds: 900, Of: kv.LevelView{IDs: []uint64{1}}}}},
		{"audit, policy", kv.Command{Audit: &kv.AuditOp{Kind: kv.AuditPolicy, Policy: []byte(`{"rules": []}`), Version: 300},
			By: auth.Credentials{User: "root", Revision: 300}}},
		{"audit, head", kv.Command{Audit: &kv.AuditOp{Kind: kv.AuditHead, Head: kv.AuditHeadRow{Member: 1 << 63, Chain: 300,
			Sequence: 300, At: 1_800_000_000_000, Sum: []byte("0123456789abcdef01234567"), File: []byte("audit.log")}}}},
		{"moment", kv.Command{Moment: &kv.MomentOp{Time: 1764374400000, Member: 1 << 63, Seen: 1 << 40}}},
		{"backup, policy", kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupSet, Generation: 300, Policy: kv.BackupPolicy{On: true,
			Place: "s3://backups/prod", Keep: "7d", BaseSeconds: 21600, SealMillis: 1000,
			VerifySeconds: 86400, Since: 1_800_000_000_000, Recipients: "age1a age1b", Secret: "0123456789abcdef0123456789abcdef",
			Former: "fedcba9876543210fedcba9876543210"}},
			By: auth.Credentials{User: "root", Revision: 300}}},
		{"backup, appointment", kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupAppoint, Turn: 300, Member: 1 << 63}}},
		{"backup, report", kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupReport, Turn: 301, Member: 1 << 63,
			Progress: kv.BackupProgress{At: 1_800_000_000_000, Restorable: kv.BackupPoint{Index: 1 << 40, Revision: 300,
				Time: 1_800_000_000_000}, Sum: 1 << 63,
				Base:     kv.BackupPoint{Index: 300, Revision: 200, Time: 1_700_000_000_000},
				BaseHash: [32]byte{31: 9}, Gaps: 2, Gap: kv.BackupGap{After: 100, Until: 300, Time: 1_600_000_000_000},
				Trouble: "the place is full",
				Retention: kv.BackupRetention{At: 1_800_000_000_000, From: 1_700_000_000_000, Bases: 300, Removed: 400, Bytes: 1 << 40,
					Why: "denied"}}}}},
		{"backup, refusal", kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupReport, Turn: 301, Member: 1 << 63,
			Progress: kv.BackupProgress{At: 1_800_000_000_000, Trouble: "not allowed", Refused: true}}}},
		{"backup, to prove", kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupProve, Turn: 302, Member: 1 << 63,
			Proof: kv.BackupProof{At: 1_800_000_000_000}}}},
		{"backup, proved", kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupProved, Turn: 303, Member: 1 << 63, Proof: kv.BackupProof{
			At: 1_800_000_000_000, Took: 300, Member: 3, Proven: true, Point: kv.BackupPoint{Index: 300, Revision: 200,
				Time: 1_700_000_000_000}, Bases: 2, Entries: 300, Base: [32]byte{31: 7}, Damaged: 1, Why: "obj/7"}}}},
		{"backup, claimed", kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupClaim, Generation: 300, Proof: kv.BackupProof{
			At: 1_800_000_000_000, By: "root", Failed: true, Why: "obj/7"}}, By: auth.Credentials{User: "root", Revision: 300}}},
		{"put in a user's name", kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: []byte("v")},
			By: auth.Credentials{User: "alice", Revision: 300}}},
		{"compact by a member", kv.Command{Compact: &kv.CompactOp{Revision: 1}, By: auth.Credentials{Member: true}}},
	}, changesOfUsers()...)
}

// transaction has every operation, in every position.
func transaction() *kv.TxnOp {
	return &kv.TxnOp{
		Compares: []kv.Compare{
			{Key: []byte("a"), Target: kv.CompareValue, Result: kv.CompareNotEqual, Value: []byte("v")},
			{Key: []byte("a"), End: []byte("b"), Target: kv.CompareLease, Number: -7},
		},
		Then: []kv.Op{
			{Put: &kv.PutOp{Key: []byte("a"), Value: []byte("1"), Lease: 9}},
			{Range: &kv.RangeOp{Key: []byte("a"), End: []byte{0}, Limit: 3, Revision: 12, Order: kv.SortDescend,
				Target: kv.SortByMod, KeysOnly: true, CountOnly: true, MinMod: 1, MaxMod: 2, MinCreate: 3, MaxCreate: 4}},
			{Range: &kv.RangeOp{Key: []byte("a")}},
		},
		Else: []kv.Op{
			{Delete: &kv.DeleteOp{Key: []byte("x"), End: []byte("y"), PrevKV: true}},
			{Txn: &kv.TxnOp{}},
		},
	}
}

// changesOfUsers has a command for each kind of change of users, roles and join tokens.
func changesOfUsers() (all []named[kv.Command]) {
	for kind := auth.Kind(1); kind.Valid(); kind++ {
		c := &auth.Change{Kind: kind, User: "u", Role: "r", Hash: []byte("h"), NoPassword: true, Secret: []byte("s"),
			Permission: auth.Permission{Access: auth.ReadWrite, Key: []byte("k"), End: []byte("l")}}
		if kind.OfJoinToken() {
			c.Now, c.Newcomer = 9, [32]byte{1}
			c.Token = &auth.JoinToken{ID: "0000000a", Hash: [32]byte{2}, Expires: 1 << 40, Uses: 3, Owner: "root"}
		}
		all = append(all, named[kv.Command]{fmt.Sprintf("change %d of users", kind), kv.Command{Auth: c}})
	}
	return all
}

// results has each kind of result, and the number of each rejection that commands have.
func results() []named[kv.Result] {
	pair := kv.KeyValue{Key: []byte("k"), Value: []byte("v"), CreateRevision: 2, ModRevision: 9, Version: 3, Lease: -4}
	all := []named[kv.Result]{
		{"nothing", kv.Result{Revision: 3}},
		{"put", kv.Result{Revision: 300, Put: &kv.PutResult{}}},
		{"put, with the previous pair", kv.Result{Revision: 3, Put: &kv.PutResult{Prev: &pair}}},
		{"delete", kv.Result{Revision: 3, Delete: &kv.DeleteResult{Deleted: 2, Prevs: []kv.KeyValue{pair, pair}}}},
		{"lease", kv.Result{Revision: 3, Lease: &kv.LeaseResult{ID: -4, TTLSeconds: 60}}},
		{"alarms", kv.Result{Revision: 3, Alarms: []kv.Alarm{{Member: 300, Kind: kv.AlarmNoSpace}}}},
		{"transaction", kv.Result{Revision: 3, Txn: &kv.TxnResult{Succeeded: true, Responses: []kv.OpResult{
			{Revision: 3, Range: &kv.RangeResult{KVs: []kv.KeyValue{pair}, More: true, Count: 5}},
			{Revision: 3, Put: &kv.PutResult{Prev: &pair}},
			{Revision: 3, Put: &kv.PutResult{}},
			{Revision: 3, Delete: &kv.DeleteResult{Deleted: 1, Prevs: []kv.KeyValue{pair}}},
			{Txn: &kv.TxnResult{Responses: []kv.OpResult{{}}}},
		}}}},
		{"put, values left out", kv.Result{Revision: 300, Left: &kv.Left{Base: 299}, Put: &kv.PutResult{}}},
		{"delete, values left out", kv.Result{Revision: 9, Left: &kv.Left{Base: 8}, Delete: &kv.DeleteResult{Deleted: 4}}},
		{"transaction, values left out", kv.Result{Revision: 9, Left: &kv.Left{Base: 9}, Txn: &kv.TxnResult{}}},
	}
	for _, err := range []error{
		kv.ErrCompacted, kv.ErrFutureRevision, kv.ErrKeyNotFound, kv.ErrLeaseNotFound, kv.ErrLeaseExists, kv.ErrLeaseTTLTooBig,
		kv.ErrNoSpace, kv.ErrCorrupt, kv.ErrSessionUnknown, kv.ErrBadCommand, kv.ErrSkipped, kv.ErrDeposed, kv.ErrJobExists,
		kv.ErrJobConflict, kv.ErrAborted, auth.ErrRootUserNotExist, auth.ErrRootRoleNotExist, auth.ErrUserAlreadyExist,
		auth.ErrUserEmpty, auth.ErrUserNotFound, auth.ErrRoleAlreadyExist, auth.ErrRoleNotFound, auth.ErrRoleEmpty,
		auth.ErrPermissionDenied, auth.ErrRoleNotGranted, auth.ErrPermissionNotGranted, auth.ErrPermissionNotGiven,
		auth.ErrInvalidManagement, auth.ErrOldRevision, auth.ErrBadName, auth.ErrTooLarge, auth.ErrTokenInvalid,
		auth.ErrTokenExpired, auth.ErrTokenUsed, auth.ErrTokenExists, auth.ErrTooManyTokens, kv.ErrLooksTooFar, kv.ErrOverQuota, kv.ErrLimitNotFound, kv.ErrTooManyLimits,
		kv.ErrHeadBehind, kv.ErrTooManyHeads,
	} {
		all = append(all, named[kv.Result]{"rejection: " + err.Error(), kv.Result{Revision: 3, Err: err}})
	}
	return all
}

// encode gives each value the name of its sort, and its bytes.
func encode[T any](sort string, all []named[T], encode func(dst []byte, value *T) []byte) (values []frozen.Value) {
	for i := range all {
		values = append(values, frozen.Value{Name: sort + ": " + all[i].name, Bytes: encode(nil, &all[i].value)})
	}
	return values
}
