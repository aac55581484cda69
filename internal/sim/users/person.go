package users

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/rpc/incoming"
	"github.com/quorate/quorate/internal/sim/permits"
)

// Person is a client that acts as a user: by a certificate, by the token of its last login, or without either as long as it has
// none.
type Person struct {
	User        string
	certificate bool
	token       string
	since       uint64 // revision of the password with which it logged in
	secret      string // secret with which the token is signed

	stale bool // its token was refused, or it has none and needs one
	// barred is set while no member lets it in: its last login failed.
	barred bool
}

// Root returns the user root, with a certificate.
func Root() *Person { return &Person{User: auth.RootUser, certificate: true} }

// Limited returns one of the users that the operator manages: every third one has a certificate.
func Limited(number int) *Person {
	return &Person{User: userName(number), certificate: number%3 == 2, stale: true}
}

const (
	userNames     = 4
	roleNames     = 3
	passwordCount = 3
)

func userName(number int) string { return fmt.Sprintf("u%d", number%userNames) }

func roleName(number int) string { return fmt.Sprintf("r%d", number%roleNames) }

// MustLogin reports whether it should log in before its next request.
func (p *Person) MustLogin() bool { return p != nil && p.stale && !p.certificate }

// Barred reports whether its last login failed, and no member has let it in since.
func (p *Person) Barred() bool { return p != nil && p.barred }

// LetIn notes that a member serves it.
func (p *Person) LetIn() {
	if p != nil {
		p.barred = false
	}
}

// LoginEnded notes whether a login was refused for its password.
func (p *Person) LoginEnded(err error) { p.barred = errors.Is(err, login.ErrFailed) }

// Wait lets it go on without another login, whether or not its last one succeeded.
func (p *Person) Wait() { p.stale = false }

// Method Who returns the user of its requests, with the credentials, for the checkers.
func (p *Person) Who() permits.Who {
	switch {
	case p == nil:
	case p.certificate:
		return permits.Who{User: p.User, Certificate: true}
	case p.token != "":
		return permits.Who{User: p.User, Since: p.since, Secret: p.secret}
	}
	return permits.Who{}
}

// context is the context of a call of p.
func (p *Person) context(ctx context.Context) context.Context {
	switch {
	case p.certificate:
		leaf := &x509.Certificate{Subject: pkix.Name{CommonName: p.User}}
		info := credentials.TLSInfo{State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}}
		return peer.NewContext(ctx, &peer.Peer{AuthInfo: info})
	case p.token != "":
		return incoming.NewContext(ctx, metadata.Pairs(rpctypes.TokenFieldNameGRPC, p.token))
	}
	return ctx
}

// hashOf returns the stand-in for the hash of a password.
func hashOf(password string) []byte { return fmt.Appendf(nil, "$2a$04$%-53s", password) }

// Answered reports whether the answer of a login is about the password, and whether the password was right.
func Answered(err error) (known, ok bool) {
	return err == nil || errors.Is(err, login.ErrFailed) || errors.Is(err, login.ErrNotEnabled), err == nil
}
