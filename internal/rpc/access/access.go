package access

import (
	"context"
	"errors"
	"strings"
	"time"
	"weak"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/incoming"
)

// Tokens tells whose a token is: *login.Login.
type Tokens interface {
	Authenticate(state *auth.State, token string) (auth.Credentials, error)
	// Again returns a function that reports, as long as users and roles are those of state, whether a token that was found good
	// is so still, and counts that as a use of it; nil if Authenticate must be asked each time.
	Again(state *auth.State, token string) func() bool
	// Quick reports whether that takes microseconds, and reads no file.
	Quick() bool
}

// Options of New.
type Options struct {
	Machine func() (machine *apply.Machine, release func())
	Users   func() *auth.State // that this member knows
	// CatchUp waits until this member has applied what was acknowledged before.
	CatchUp func(ctx context.Context) error
	Tokens  Tokens
	// Certificates says that clients must show a certificate, whose common name is their user.
	Certificates bool
}

// Control is the access control of one member.
type Control struct {
	options  Options
	catching *admission.HostBound
}

// New makes a Control.
func New(options Options) *Control {
	return &Control{options: options, catching: admission.NewHostBound(maxCatchingUp, maxHostCatchingUp)}
}

// State returns the users and roles that this member knows.
func (c *Control) State() *auth.State { return c.options.Users() }

// Caller returns in whose name a call comes: no user's while authentication is disabled.
func (c *Control) Caller(ctx context.Context) (auth.Credentials, error) {
	by, _, err := c.caller(ctx)
	return by, err
}

func (c *Control) caller(ctx context.Context) (auth.Credentials, *auth.State, error) {
	state := c.State()
	if !state.Enabled() {
		return auth.Credentials{}, state, nil
	}
	by, err := c.callerIn(ctx, state)
	if err != nil && c.catchUp(ctx) == nil {
		state = c.State()
		by, err = c.callerIn(ctx, state)
	}
	return by, state, err
}

// catchUp waits until this member knows the users and roles that others have acknowledged, if there is room: a caller that is
// refused makes it ask the leader, and need not have logged in for that.
func (c *Control) catchUp(ctx context.Context) error {
	leave, entered := c.catching.Enter(admission.CallerOf(ctx).Host)
	if !entered {
		return errBusy
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, catchUpPatience)
	defer cancel()
	return c.options.CatchUp(ctx)
}

// CatchingUp is how many refused calls wait to see whether this member only lags.
func (c *Control) CatchingUp() int {
	waiting, _ := c.catching.Counts()
	return waiting
}

const (
	// maxCatchingUp is how many calls that are refused may wait at once to see whether this member only lags.
	maxCatchingUp     = 64
	maxHostCatchingUp = maxCatchingUp / 4 // from one host, so that none takes the room of the others
	catchUpPatience   = 2 * time.Second
)

var errBusy = errors.New("access: too many refused calls wait already")

func (c *Control) callerIn(ctx context.Context, state *auth.State) (auth.Credentials, error) {
	if !state.Enabled() {
		return auth.Credentials{}, nil
	}
	if token, ok := tokenOf(ctx); ok {
		return c.options.Tokens.Authenticate(state, token)
	}
	if c.options.Certificates {
		if user, ok := certificateOf(ctx); ok {
			return auth.Credentials{User: user, Revision: auth.AnyRevision}, nil
		}
	}
	return auth.Credentials{}, nil
}

// MayBear reports whether a call may come in a user's name, also while this member knows of no authentication.
func (c *Control) MayBear(ctx context.Context) bool {
	_, token := tokenOf(ctx)
	return token || c.options.Certificates
}

func tokenOf(ctx context.Context) (string, bool) {
	for _, field := range [...]string{rpctypes.TokenFieldNameGRPC, rpctypes.TokenFieldNameSwagger} {
		if value, found := incoming.First(ctx, field); found {
			return strings.TrimPrefix(value, "Bearer "), true
		}
	}
	return "", false
}

// gatewayField is in the metadata of every call that comes through a JSON gateway.
const gatewayField = "grpcgateway-accept"

func certificateOf(ctx context.Context) (user string, ok bool) {
	state, ok := tlsconn.StateOf(ctx)
	if _, fromGateway := incoming.First(ctx, gatewayField); !ok || fromGateway {
		return "", false
	}
	return login.CommonName(&state)
}

// permit returns the State by which a call is permitted, and in whose name it comes.
func (c *Control) permit(ctx context.Context, check func(*auth.Check) error) (*auth.State, error) {
	_, state, err := c.permitBy(ctx, check)
	return state, err
}

func (c *Control) permitBy(
	ctx context.Context, check func(*auth.Check) error,
) (by auth.Credentials, state *auth.State, err error) {
	by, state, err = c.caller(ctx)
	if err != nil || !state.Enabled() {
		return by, state, err
	}
	checked := state.Check(by)
	if err = check(&checked); err == nil || c.catchUp(ctx) != nil {
		return by, state, err
	}
	state = c.State()
	checked = state.Check(by)
	return by, state, check(&checked)
}

// Root permits a call only to those who have the role root.
func (c *Control) Root(ctx context.Context) error {
	_, err := c.permit(ctx, (*auth.Check).Root)
	return err
}

// RootNow is Root by the users that there are now, not by those that this member knows: for what is done outside of the state
// machine, where no check follows.
func (c *Control) RootNow(ctx context.Context) error {
	if err := c.Root(ctx); err != nil {
		return err
	}
	patience, cancel := context.WithTimeout(ctx, catchUpPatience)
	defer cancel()
	if err := c.options.CatchUp(patience); err != nil && c.State().Enabled() {
		return err
	}
	return c.Root(ctx)
}

// User permits a call to every user.
func (c *Control) User(ctx context.Context) error {
	_, err := c.permit(ctx, (*auth.Check).User)
	return err
}

// Read permits to read a range. The result may be answered if Unchanged(state), or if the reading is permitted again.
func (c *Control) Read(ctx context.Context, key, end []byte) (state *auth.State, err error) {
	_, state, err = c.ReadBy(ctx, key, end)
	return state, err
}

// ReadBy is Read, and says in whose name the call comes.
func (c *Control) ReadBy(ctx context.Context, key, end []byte) (by auth.Credentials, state *auth.State, err error) {
	if state := c.State(); !state.Enabled() {
		return auth.Credentials{}, state, nil
	}
	return c.permitBy(ctx, func(check *auth.Check) error { return check.Read(key, end) })
}

// NameNow returns the user of a call, without waiting: empty if there is none, if the call's token is not good, or if it takes
// long to see whose it is.
func (c *Control) NameNow(ctx context.Context) string {
	state := c.State()
	if !state.Enabled() {
		return ""
	}
	by, _ := c.callerNow(ctx, state)
	return by.User
}

// ReadTxn permits a transaction that only reads. The result may be answered if Unchanged(state), or if the reading is
// permitted again.
func (c *Control) ReadTxn(ctx context.Context, op *kv.TxnOp) (state *auth.State, err error) {
	if state := c.State(); !state.Enabled() {
		return state, nil
	}
	return c.permit(ctx, func(check *auth.Check) error { return apply.PermitTxn(check, op) })
}

// ReadKeys permits to answer with all of the keys, which were read before.
func (c *Control) ReadKeys(ctx context.Context, keys []string) error {
	_, err := c.permit(ctx, func(check *auth.Check) error {
		err := check.User()
		for i := 0; err == nil && i < len(keys) && !check.Free(); i++ {
			err = check.Read([]byte(keys[i]), nil)
		}
		return err
	})
	return err
}

// CallerNow is Caller without waiting, for a call that was permitted: nobody's if it takes long to see whose it is.
func (c *Control) CallerNow(ctx context.Context) auth.Credentials {
	state := c.State()
	if !state.Enabled() {
		return auth.Credentials{}
	}
	by, _ := c.callerNow(ctx, state)
	return by
}

// Free reports whether the caller may do everything: then nothing needs to be asked key by key.
func (c *Control) Free(ctx context.Context) bool {
	by, state, err := c.caller(ctx)
	check := state.Check(by)
	return err == nil && check.Free()
}

// Unchanged reports whether users and roles are those of state.
func (c *Control) Unchanged(state *auth.State) bool { return c.State() == state }

// Sign puts into a command in whose name it comes, and refuses what that user may not do.
func (c *Control) Sign(ctx context.Context, command *kv.Command) error {
	by, _, err := c.caller(ctx)
	if err != nil {
		return err
	}
	return c.sign(ctx, command, by)
}

// SignNow is Sign without waiting. It reports false where Sign has to be asked: this member may lag, or a token takes long to
// check. A call that bears a token while this member knows of no authentication is for Propose, which may sign it twice.
func (c *Control) SignNow(ctx context.Context, command *kv.Command) bool {
	state := c.State()
	if !state.Enabled() {
		return !c.MayBear(ctx)
	}
	by, known := c.callerNow(ctx, state)
	command.By = by
	return known && c.permitted(command) == nil
}

// ReadNow is Read without waiting. It reports false where Read has to be asked.
func (c *Control) ReadNow(ctx context.Context, key, end []byte) (*auth.State, bool) {
	state := c.State()
	if !state.Enabled() {
		return state, true
	}
	by, known := c.callerNow(ctx, state)
	checked := state.Check(by)
	return state, known && checked.Read(key, end) == nil
}

// TakesLong reports whether it takes long to see whose a call is.
func (c *Control) TakesLong(ctx context.Context) bool {
	if c.options.Tokens.Quick() {
		return false
	}
	_, token := tokenOf(ctx)
	return token
}

func (c *Control) callerNow(ctx context.Context, state *auth.State) (auth.Credentials, bool) {
	if c.TakesLong(ctx) {
		return auth.Credentials{}, false
	}
	kept := incoming.Kept(ctx)
	if kept == nil {
		by, err := c.callerIn(ctx, state)
		return by, err == nil
	}
	if known, ok := kept.Load().(*bearer); ok && known.state.Value() == state && known.again() {
		return known.by, true
	}
	by, err := c.callerIn(ctx, state)
	if token, ok := tokenOf(ctx); ok && err == nil {
		if again := c.options.Tokens.Again(state, token); again != nil {
			kept.Store(&bearer{weak.Make(state), by, again})
		}
	}
	return by, err == nil
}

// bearer is the user whose token the calls of a connection bear.
type bearer struct {
	state weak.Pointer[auth.State] // by which the token was found good
	by    auth.Credentials
	again func() bool
}

// Propose signs a command and proposes it. A command that bears no user's name, because this member did not know yet that
// authentication was enabled, and is rejected for that, is signed and proposed once more: its caller may well have logged in.
func (c *Control) Propose(
	ctx context.Context, command *kv.Command, propose func(context.Context, *kv.Command) (kv.Result, error),
) (kv.Result, error) {
	for again := false; ; again = true {
		if err := c.Sign(ctx, command); err != nil {
			return kv.Result{}, err
		}
		nameless := command.By.IsZero()
		result, err := propose(ctx, command)
		if again || !nameless || !errors.Is(err, auth.ErrUserEmpty) && !errors.Is(result.Err, auth.ErrUserEmpty) {
			return result, err
		}
	}
}

// Unsettled reports whether a call bears a token while this member knows of no authentication. It has not applied yet that this
// was enabled, or the client does not know yet that it was disabled. An offer to several members must bear the same name
// at all of them, since one of them may have to propose the command that another has answered: so such offers are not taken.
func (c *Control) Unsettled(ctx context.Context) bool {
	_, token := tokenOf(ctx)
	return token && !c.State().Enabled()
}

// named returns the user whose certificate is shown.
func (c *Control) named(ctx context.Context) (string, bool) {
	if !c.options.Certificates {
		return "", false
	}
	return certificateOf(ctx)
}

// SignOffer is Sign for a command that a client offers to several members at once: who shows a certificate is named also while
// this member knows of no authentication.
func (c *Control) SignOffer(ctx context.Context, command *kv.Command) error {
	by, state, err := c.caller(ctx)
	if err != nil {
		return err
	}
	if by.IsZero() && !state.Enabled() {
		if user, ok := c.named(ctx); ok {
			by = auth.Credentials{User: user, Revision: auth.AnyRevision}
		}
	}
	return c.sign(ctx, command, by)
}

func (c *Control) sign(ctx context.Context, command *kv.Command, by auth.Credentials) error {
	command.By = by
	if by.IsZero() && !c.State().Enabled() {
		return nil
	}
	err := c.permitted(command)
	if err != nil && c.catchUp(ctx) == nil {
		err = c.permitted(command)
	}
	return err
}

func (c *Control) permitted(command *kv.Command) error {
	machine, release := c.options.Machine()
	defer release()
	return machine.Permit(command)
}

// Renew permits to renew leases: the first so many of them, and none of the rest for the reason that err tells.
func (c *Control) Renew(ctx context.Context, ids []kv.LeaseID) (permitted int, err error) {
	by, state, err := c.caller(ctx)
	if err != nil {
		return 0, err
	}
	if !state.Enabled() {
		return len(ids), nil
	}
	for i, id := range ids {
		if err = c.mayRenew(by, id); err != nil && c.catchUp(ctx) == nil {
			err = c.mayRenew(by, id)
		}
		if err != nil {
			return i, err
		}
	}
	return len(ids), nil
}

func (c *Control) mayRenew(by auth.Credentials, id kv.LeaseID) error {
	machine, release := c.options.Machine()
	defer release()
	return machine.PermitLease(by, id)
}
