package member

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
)

// admission decides, at the leader, which processes may join that no operator has added and that showed no peer certificate.
// While authentication is enabled, or peers must show certificates, such a process needs a join token: without one, any process
// that reaches a peer port could add members, evict others, and read all data as one.
type admission struct {
	stores  *datadir.Stores
	propose func(ctx context.Context, command *kv.Command) (kv.Result, error)
	clock   env.Clock
	// certificates reports whether peers must show certificates here.
	certificates func() bool
}

// admit returns nil if the process may join, else a refusal that tells the operator what to do. Call it after a read index.
func (a *admission) admit(ctx context.Context, r *autopilot.JoinQuestion) error {
	users := a.stores.Latest().Users()
	switch certificates := r.Certificates || a.certificates(); {
	case !users.Enabled() && !certificates:
		return nil
	case r.Token == "" && certificates && !users.Enabled():
		return refusal("members show certificates here, and this process shows none that names a host of its peer URLs: give " +
			"it one with --peer-cert-file and --peer-key-file, or start it with --join-token and what `quorate token create` " +
			"prints, or add it by `quorate member add` or `quorate member replace` with its peer URLs, and start it again")
	case r.Token == "":
		return refusal("authentication is enabled, and this process has not shown who it is: start it with --join-token and " +
			"what `quorate token create` prints, or add it as root, by `quorate member add` or `quorate member replace` " +
			"with its peer URLs, and start it again")
	}
	id, hash, err := auth.ParseToken(r.Token)
	if err != nil {
		return refusal("--join-token is no join token: `quorate token create` prints 8 digits, a dot and 32 digits")
	}
	use := auth.Change{
		Kind: auth.JoinTokenUse, Token: &auth.JoinToken{ID: id, Hash: hash}, Newcomer: auth.Newcomer(r.PeerURLs),
		Now: a.clock.Now().UnixMilli(),
	}
	if err := users.Admits(id, hash, use.Newcomer, use.Now); err != nil {
		return explainToken(id, err)
	}
	if users.Admitted(id, use.Newcomer) {
		return nil // admitted before: there is nothing to write
	}
	result, err := a.propose(ctx, &kv.Command{Auth: &use, By: users.ByMember()})
	if err == nil {
		err = result.Err
	}
	return explainToken(id, err)
}

// explainToken adds what to do to the error of a token that does not admit.
func explainToken(id string, err error) error {
	const again = ": make another one with `quorate token create`"
	switch {
	case errors.Is(err, auth.ErrTokenInvalid):
		return refusal("the cluster does not know join token " + id + ", or its secret is another one, or its " +
			"owner is no root any more" + again)
	case errors.Is(err, auth.ErrTokenExpired):
		return refusal("join token " + id + " has expired" + again)
	case errors.Is(err, auth.ErrTokenUsed):
		return refusal("join token " + id + " has admitted as many members as it may" + again + ", and --uses if more are " +
			"to come")
	}
	return err
}

func refusal(text string) error { return &membership.SpecError{Text: text} }
