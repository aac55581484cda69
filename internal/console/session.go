package console

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/tlsconn"
)

// session is who looks, as the cookie of the browser says. The console keeps none of it: the token is one that a member made,
// and each call of a page is checked by it.
type session struct {
	user, token string
}

const (
	// maxLoginBytes bounds the form of a login: anybody may send one.
	maxLoginBytes = 4 << 10
	// loginPatience is how long a login may take: the hash of a password takes a while, and the cluster must answer.
	loginPatience = 5 * time.Second
)

// cookieName differs between members: browsers give a cookie to all ports of a host.
func (c *Console) cookieName() string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(c.options.Member + "\x00" + c.options.Endpoint))
	name := fmt.Sprintf("quorate-%08x", sum.Sum32())
	if c.options.Encrypted {
		return "__Host-" + name // RFC 6265bis, section 4.1.3: of this host alone, and encrypted
	}
	return name
}

// sessionOf reads the cookie of a request. A cookie that is none is nobody.
func (c *Console) sessionOf(r *http.Request) (s session) {
	cookie, err := r.Cookie(c.cookieName())
	if err != nil {
		return s
	}
	sum, rest, found := strings.Cut(cookie.Value, ".")
	user, token, whole := strings.Cut(rest, ".")
	name, err := base64.RawURLEncoding.DecodeString(user)
	if !found || !whole || err != nil || !hmac.Equal([]byte(sum), []byte(c.seal(string(name), token))) {
		return s
	}
	return session{string(name), token}
}

// seal ties a name to the token that a login gave for it, so that what the log and pages say of a user is true. Its key is of
// this process: whoever logged in before a restart logs in again.
func (c *Console) seal(name, token string) string {
	sum := hmac.New(sha256.New, c.key[:])
	fmt.Fprintf(sum, "%d %s%s", len(name), name, token)
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

func (c *Console) cookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: c.cookieName(), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: c.options.Encrypted,
		SameSite: http.SameSiteStrictMode}
}

// with adds the token to the calls of a context.
func (s session) with(ctx context.Context) context.Context {
	if s.token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, s.token)
}

// name is the user as a page shows it: the one who logged in, or the one of the certificate.
func (s session) name(r *http.Request) string {
	if s.user != "" {
		return s.user
	}
	return certified(r)
}

// certified is the common name of the certificate that a client has shown, as far as it was verified.
func certified(r *http.Request) string {
	state := tlsconn.StateOfRequest(r)
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return ""
	}
	return state.VerifiedChains[0][0].Subject.CommonName
}

// asksForLogin reports whether an error says that a user must log in, or again.
func asksForLogin(err error) bool {
	switch status.Code(err) {
	case codes.Unauthenticated:
		return true
	case codes.InvalidArgument:
		return errors.Is(rpctypes.Error(err), rpctypes.ErrUserEmpty)
	}
	return false
}

func (c *Console) showLogin(w http.ResponseWriter, r *http.Request) {
	c.writeLogin(w, r, http.StatusOK, "")
}

func (c *Console) writeLogin(w http.ResponseWriter, r *http.Request, code int, fault string) {
	next := r.PostForm.Get("next") // as takeForm has read it: FormValue reads files of any size, and keeps them on the disk
	if r.PostForm == nil {
		next = r.URL.Query().Get("next")
	}
	next = inside(next)
	ended := c.sessionOf(r).token != "" && fault == ""
	c.write(w, r, code, c.looks.frame, "login.html", map[string]any{"Next": next, "Fault": fault, "Ended": ended})
}

// login exchanges a password for a token, which becomes the cookie.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	done, err := c.takeForm(w, r, maxLoginBytes)
	defer done()
	if err != nil {
		c.writeLogin(w, r, http.StatusBadRequest, "The form cannot be read: send it again.")
		return
	}
	name := r.PostForm.Get("name")
	ctx, leave := c.options.Enter(r)
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	answer, err := pb.NewAuthClient(c.options.Conn).Authenticate(ctx, &pb.AuthenticateRequest{Name: name,
		Password: r.PostForm.Get("password")})
	switch {
	case err == nil:
		value := c.seal(name, answer.GetToken()) + "." + base64.RawURLEncoding.EncodeToString([]byte(name)) + "." +
			answer.GetToken()
		http.SetCookie(w, c.cookie(value, 0))
		http.Redirect(w, r, inside(r.PostForm.Get("next")), http.StatusSeeOther)
	case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled):
		c.writeLogin(w, r, http.StatusConflict, "This cluster has no users: all can be seen without a login.")
	case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed):
		c.writeLogin(w, r, http.StatusForbidden, "The name or the password is wrong.")
	default:
		_, said := explain(err, loginPatience)
		c.writeLogin(w, r, http.StatusServiceUnavailable, said)
	}
}

// logout forgets the cookie. The token ends by itself.
func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, c.cookie("", -1))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// inside is a path of the console to go on to; anything else is the first page. A browser reads a backslash as a slash, and two
// slashes as another host.
func inside(next string) string {
	u, err := url.Parse(next)
	odd := strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t")
	if err != nil || odd || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") {
		return "/"
	}
	return next
}
