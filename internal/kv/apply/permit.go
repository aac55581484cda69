package apply

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
)

// permit rejects a command that its user may not do, before it changes anything. As in etcd both branches of a transaction
// count, and all its compares, so that the answer reveals nothing of keys that the user may not read.
//
// Commands that only members propose name no user and are always permitted: sessions, jobs, what members publish, the ends of
// leases that a leader found expired, counts for quotas, turns and reports of a backup, and those that raise the feature level
// by its policy. No request of a client becomes one of these. Clients and members propose alarms and compactions; the
// credentials of members say so. A State without a secret gets one by a command without a user: see auth.State.Next.
func permit(state *auth.State, leases leasedKeys, cmd *kv.Command) error {
	if !state.Enabled() || cmd.Auth != nil && cmd.Auth.Kind == auth.Enable && len(state.Secret()) == 0 {
		return nil
	}
	p := permission{user: state.Check(cmd.By), leases: leases}
	switch {
	case cmd.Put != nil:
		return p.mayPut(cmd.Put)
	case cmd.Delete != nil:
		return p.mayDelete(cmd.Delete)
	case cmd.Txn != nil:
		return p.mayTxn(cmd.Txn)
	case cmd.Compact != nil, cmd.Auth != nil, cmd.Alarm != nil, cmd.LevelPolicy != nil && !byLeader(cmd.LevelPolicy),
		cmd.Raise != nil && cmd.Raise.Finalize, cmd.Limit != nil && cmd.Limit.Count == "",
		cmd.Audit != nil && cmd.Audit.Kind != kv.AuditHead, cmd.Backup != nil && cmd.Backup.Kind.FromClient():
		return p.user.Root()
	case cmd.LeaseGrant != nil:
		return p.user.User()
	case cmd.LeaseRevoke != nil && cmd.LeaseRevoke.Term == 0:
		return p.mayLease(cmd.LeaseRevoke.ID)
	}
	return nil
}

// byLeader reports whether leaders propose such a command, and no request of a client becomes one.
func byLeader(op *kv.LevelPolicyOp) bool { return op.Initial || op.Returned }

// permission is the state of the checks of one command.
type permission struct {
	user    auth.Check
	leases  leasedKeys
	passed  []kv.LeaseID // leases whose keys the user may write
	checked int          // keys of leases, so far
}

// MaxLeaseKeys bounds the keys of all leases, together, that a command of a user other than root names: they are checked one by
// one.
const MaxLeaseKeys = 10_000

// maxLeases bounds the leases that such a command may name.
const maxLeases = 128

func (p *permission) mayPut(op *kv.PutOp) error {
	if err := p.user.Write(op.Key, nil); err != nil {
		return err
	}
	if op.PrevKV {
		if err := p.user.Read(op.Key, nil); err != nil {
			return err
		}
	}
	if op.Lease == 0 {
		return nil
	}
	return p.mayLease(op.Lease)
}

// mayLease permits to end a lease, which deletes its keys, to keep it from ending, or to attach another key to it.
func (p *permission) mayLease(id kv.LeaseID) error {
	if err := p.user.User(); err != nil || p.user.Free() {
		return err
	}
	if slices.Contains(p.passed, id) {
		return nil
	}
	keys, _ := p.leases.leases.KeysSize(id)
	if keys > MaxLeaseKeys-p.checked || len(p.passed) == maxLeases {
		return auth.ErrPermissionDenied
	}
	p.checked += keys
	if keys > 0 {
		var denied error
		err := p.leases.rows.VisitKeys(id, func(key []byte) bool {
			denied = p.user.Write(key, nil)
			keys-- // a search behind the last one may take long: see revoke
			return denied == nil && keys > 0
		})
		if err = cmp.Or(err, denied); err != nil {
			return err
		}
	}
	p.passed = append(p.passed, id)
	return nil
}

func (p *permission) mayDelete(op *kv.DeleteOp) error {
	err := p.user.Write(op.Key, op.End)
	if err == nil && op.PrevKV {
		err = p.user.Read(op.Key, op.End)
	}
	return err
}

func (p *permission) mayTxn(op *kv.TxnOp) error {
	if err := p.user.User(); err != nil {
		return err
	}
	for i := range op.Compares {
		if err := p.user.Read(op.Compares[i].Key, op.Compares[i].End); err != nil {
			return err
		}
	}
	for _, branch := range [...][]kv.Op{op.Then, op.Else} {
		for i := range branch {
			if err := p.mayOp(&branch[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *permission) mayOp(op *kv.Op) error {
	switch {
	case op.Range != nil:
		return p.user.Read(op.Range.Key, op.Range.End)
	case op.Put != nil:
		return p.mayPut(op.Put)
	case op.Delete != nil:
		return p.mayDelete(op.Delete)
	case op.Txn != nil:
		return p.mayTxn(op.Txn)
	}
	return nil
}

// PermitTxn checks a transaction that only reads, and is answered without the log.
func PermitTxn(check *auth.Check, op *kv.TxnOp) error {
	p := permission{user: *check}
	return p.mayTxn(op)
}

// asOffered adapts a command for the check. A native client offers a command to several members at once, each of which adds its
// own view of the client's login, and any of their versions may come into the log. So the login's revision does not count: the
// leader has checked the login itself when it took the offer.
func asOffered(e *consensus.Entry, cmd *kv.Command) {
	if e.ExactRevision != 0 && e.Proposal.Session.OfClient() && cmd.By.User != "" {
		cmd.By.Revision = auth.AnyRevision
	}
}

// leasedKeys is the leases with their keys.
type leasedKeys struct {
	leases *lease.Lessor
	rows   lease.Visitor
}
