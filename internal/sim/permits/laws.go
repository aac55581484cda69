package permits

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Laws check permissions: an operation that was permitted or refused must have been so at one moment at least between call and
// return, by the serial history of users and roles. The model also judges writes at their place in the log.
type Laws struct {
	history []era
	acked   int                                    // the newest of them that was acknowledged to an operator
	at      map[consensus.MemberID]consensus.Index // applied indexes of the members
	broken  func(property, format string, args ...any)
}

// era is the time between two changes of users and roles.
type era struct {
	from     consensus.Index // the entry with which it began
	revision kv.Revision     // of the store at that entry
	change   *auth.Change
	Users
}

// Init begins with no users. report is called with violations.
func (p *Laws) Init(report func(property, format string, args ...any)) {
	p.broken = report
	p.history, p.at = []era{{Users: NewUsers()}}, map[consensus.MemberID]consensus.Index{}
}

// A Who is the user of a client's requests, with its credentials. The zero value is no user.
type Who struct {
	User        string
	Certificate bool
	Since       uint64 // else: revision of the password with which it logged in
	Secret      string // secret with which its token is signed
}

func (w *Who) String() string {
	switch {
	case w.User == "":
		return "nobody"
	case w.Certificate:
		return w.User + " (by certificate)"
	}
	return fmt.Sprintf("%s (by its password of %d)", w.User, w.Since)
}

func (n need) String() string {
	what := "to read"
	if n.write {
		what = "to write"
	}
	return fmt.Sprintf("%s [%q, %q)", what, n.key, n.end)
}

// Began notes that an entry changed users and roles.
func (p *Laws) Began(index consensus.Index, revision kv.Revision, change *auth.Change, u Users) {
	p.history = append(p.history, era{index, revision, change, u})
}

// Present returns the newest acknowledged change: a request that begins now is judged from there on.
func (p *Laws) Present() int { return p.acked }

// Reached notes the applied index of a member.
func (p *Laws) Reached(member consensus.MemberID, index consensus.Index) { p.at[member] = index }

// PresentAt is Present for a request to one member alone, which may lag.
func (p *Laws) PresentAt(member consensus.MemberID) int {
	applied := p.at[member]
	for i := len(p.history) - 1; i > 0; i-- {
		if p.history[i].from <= applied {
			return i
		}
	}
	return 0
}

// Newest returns the newest change that any member has applied.
func (p *Laws) Newest() int { return len(p.history) - 1 }

// Acknowledged records that a change was answered with success. It was proposed when Newest returned before.
func (p *Laws) Acknowledged(before int, change *auth.Change) {
	for i := before + 1; i < len(p.history); i++ {
		if p.history[i].change.Kind == change.Kind && sameChange(p.history[i].change, change) {
			p.acked = max(p.acked, i)
			return
		}
	}
}

func sameChange(a, b *auth.Change) bool {
	return a.User == b.User && a.Role == b.Role && string(a.Hash) == string(b.Hash) && string(a.Secret) == string(b.Secret) &&
		a.Permission.Access == b.Permission.Access && string(a.Permission.Key) == string(b.Permission.Key) &&
		string(a.Permission.End) == string(b.Permission.End)
}

// Told records the outcome of a command that a client requested when Present returned since: refused is nil if it succeeded.
func (p *Laws) Told(since int, who *Who, c *kv.Command, refused error) {
	n := needsOf(c)
	p.weigh(since, who, &n, refused)
}

// ToldRead is Told for a range.
func (p *Laws) ToldRead(since int, who *Who, op *kv.RangeOp, refused error) {
	n := needs{}
	n.reads(op.Key, op.End)
	p.weigh(since, who, &n, refused)
}

// ToldReadTxn is Told for a transaction that only reads.
func (p *Laws) ToldReadTxn(since int, who *Who, op *kv.TxnOp, refused error) {
	n := needs{}
	n.txn(op)
	p.weigh(since, who, &n, refused)
}

func (p *Laws) weigh(since int, who *Who, n *needs, refused error) {
	if refused != nil && len(n.leases) > 0 {
		return // the keys of a lease at a moment are not looked up
	}
	for i := since; i < len(p.history); i++ {
		if (p.history[i].allows(who, n) == nil) == (refused == nil) {
			return
		}
	}
	if refused == nil {
		p.broken("permission", "%v was permitted %v, which users and roles forbid from change %d to %d (%v)", who, n.list,
			since, len(p.history)-1, p.history[since].allows(who, n))
		return
	}
	p.broken("permission", "%v was refused %v (%v), which users and roles permit from change %d to %d", who, n.list,
		refused, since, len(p.history)-1)
}

var (
	errPassword = errors.New("permits: the token is of a former password")
	errSecret   = errors.New("permits: the token is from before authentication was enabled again")
)

// allows returns the error with which a request would be refused in an era, apart from keys of leases.
func (e *era) allows(who *Who, n *needs) error {
	by := auth.Credentials{User: who.User, Revision: auth.AnyRevision}
	if e.Enabled && !who.Certificate && who.User != "" {
		switch now, found := e.Users.users[who.User]; {
		case !found || now.since != who.Since:
			return errPassword
		case e.secret != who.Secret:
			return errSecret
		}
	}
	return e.permit(by, n, func(kv.LeaseID) []string { return nil })
}

// LoggedIn records the outcome of a login: the hash with which the password agrees, and whether it succeeded.
func (p *Laws) LoggedIn(since int, name, hash string, succeeded bool) {
	for i := since; i < len(p.history); i++ {
		now, found := p.history[i].Users.users[name]
		if right := found && !now.none && now.password == hash && p.history[i].Enabled; right == succeeded {
			return
		}
	}
	p.broken("permission", "%q logged in with the password of %q: %t; users say the opposite from change %d to %d", name,
		hash, succeeded, since, len(p.history)-1)
}
