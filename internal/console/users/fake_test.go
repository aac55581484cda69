package users_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/console"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/users"
)

// member answers the calls of the Auth service from a real state of package auth. The caller is one user.
type member struct {
	state    *auth.State
	by       string
	password string // the last one that was sent
	calls    atomic.Int64
	fault    error // of every call
}

func newMember(t *testing.T) *member {
	m := &member{state: auth.New(), by: "root"}
	for _, name := range []string{"root", "alice", "bob"} {
		m.change(t, auth.Change{Kind: auth.UserAdd, User: name, Hash: []byte("hash")})
	}
	for _, name := range []string{"pods", "events"} {
		m.change(t, auth.Change{Kind: auth.RoleAdd, Role: name})
	}
	m.change(t, auth.Change{Kind: auth.UserGrantRole, User: "root", Role: "root"})
	m.change(t, auth.Change{Kind: auth.UserGrantRole, User: "alice", Role: "pods"})
	m.change(t, auth.Change{Kind: auth.GrantPermission, Role: "pods",
		Permission: auth.Permission{Access: auth.ReadWrite, Key: []byte("/registry/pods/"), End: []byte("/registry/pods0")}})
	m.change(t, auth.Change{Kind: auth.GrantPermission, Role: "events",
		Permission: auth.Permission{Access: auth.Read, Key: []byte("/registry/events/"), End: []byte("/registry/events0")}})
	m.change(t, auth.Change{Kind: auth.Enable, Secret: []byte("secret")})
	return m
}

func (m *member) change(t *testing.T, c auth.Change) {
	t.Helper()
	next, _, err := m.state.Next(&c)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	m.state = next
}

func (m *member) apply(c auth.Change) error {
	if err := m.root(); err != nil {
		return err
	}
	next, _, err := m.state.Next(&c)
	m.state = next
	switch {
	case errors.Is(err, auth.ErrUserNotFound):
		return rpctypes.ErrGRPCUserNotFound
	case errors.Is(err, auth.ErrRoleNotFound):
		return rpctypes.ErrGRPCRoleNotFound
	case err != nil:
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return nil
}

func (m *member) root() error {
	check := m.state.Check(auth.Credentials{User: m.by, Revision: auth.AnyRevision})
	if check.Root() != nil {
		return rpctypes.ErrGRPCPermissionDenied
	}
	return nil
}

func (m *member) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no streams")
}

func (m *member) Invoke(_ context.Context, _ string, args, reply any, _ ...grpc.CallOption) error {
	m.calls.Add(1)
	if m.fault != nil {
		return m.fault
	}
	answer, err := m.answer(args)
	if err == nil && answer != nil {
		proto.Merge(reply.(proto.Message), answer)
	}
	return err
}

func (m *member) answer(args any) (proto.Message, error) {
	switch a := args.(type) {
	case *pb.AuthenticateRequest:
		return &pb.AuthenticateResponse{Token: "token"}, nil
	case *pb.AuthStatusRequest:
		return &pb.AuthStatusResponse{Enabled: m.state.Enabled(), AuthRevision: m.state.Revision()}, nil
	case *pb.AuthUserListRequest:
		return &pb.AuthUserListResponse{Users: m.state.Users()}, m.root()
	case *pb.AuthRoleListRequest:
		return &pb.AuthRoleListResponse{Roles: m.state.Roles()}, m.root()
	case *pb.AuthUserGetRequest:
		user, ok := m.state.User(a.Name)
		switch {
		case m.root() != nil && a.Name != m.by:
			return nil, rpctypes.ErrGRPCPermissionDenied
		case !ok:
			return nil, rpctypes.ErrGRPCUserNotFound
		}
		return &pb.AuthUserGetResponse{Roles: user.Roles}, nil
	case *pb.AuthRoleGetRequest:
		role, ok := m.state.Role(a.Role)
		switch {
		case m.root() != nil && !m.state.HasRole(m.by, a.Role):
			return nil, rpctypes.ErrGRPCPermissionDenied
		case !ok:
			return nil, rpctypes.ErrGRPCRoleNotFound
		}
		return &pb.AuthRoleGetResponse{Perm: role.Message().KeyPermission}, nil
	}
	return nil, m.write(args)
}

func (m *member) write(args any) error {
	switch a := args.(type) {
	case *pb.AuthUserAddRequest:
		m.password = a.Password
		return m.apply(auth.Change{Kind: auth.UserAdd, User: a.Name, Hash: []byte("hash"), NoPassword: a.Options.GetNoPassword()})
	case *pb.AuthUserChangePasswordRequest:
		m.password = a.Password
		return m.apply(auth.Change{Kind: auth.UserPassword, User: a.Name, Hash: []byte("hash")})
	case *pb.AuthUserDeleteRequest:
		return m.apply(auth.Change{Kind: auth.UserDelete, User: a.Name})
	case *pb.AuthUserGrantRoleRequest:
		return m.apply(auth.Change{Kind: auth.UserGrantRole, User: a.User, Role: a.Role})
	case *pb.AuthUserRevokeRoleRequest:
		return m.apply(auth.Change{Kind: auth.UserRevokeRole, User: a.Name, Role: a.Role})
	case *pb.AuthRoleAddRequest:
		return m.apply(auth.Change{Kind: auth.RoleAdd, Role: a.Name})
	case *pb.AuthRoleDeleteRequest:
		return m.apply(auth.Change{Kind: auth.RoleDelete, Role: a.Role})
	case *pb.AuthRoleGrantPermissionRequest:
		return m.apply(auth.Change{Kind: auth.GrantPermission, Role: a.Name,
			Permission: auth.Permission{Access: auth.Access(a.Perm.PermType), Key: a.Perm.Key, End: a.Perm.RangeEnd}})
	case *pb.AuthRoleRevokePermissionRequest:
		return m.apply(auth.Change{Kind: auth.RevokePermission, Role: a.Role, Permission: auth.Permission{Key: a.Key, End: a.RangeEnd}})
	}
	return status.Errorf(codes.Unimplemented, "%T", args)
}

// browser looks at the pages of a console.
type browser struct {
	t       *testing.T
	handler http.Handler
	logged  *strings.Builder
	cookies []*http.Cookie
}

func open(t *testing.T, m *member, admin bool) *browser {
	t.Helper()
	b := &browser{t: t, logged: &strings.Builder{}}
	options := console.Options{Conn: m, Pages: []page.Page{users.Page(), users.Confirm()}, Member: "m1", Admin: admin,
		Endpoint: "http://127.0.0.1:2379", MemoryBytes: 8 << 20, Logger: slog.New(slog.NewTextHandler(b.logged, nil)),
		Enter: func(r *http.Request) (context.Context, func()) { return r.Context(), func() {} },
		Lend:  func(*http.Request, int) (func(), error) { return func() {}, nil }}
	c, err := console.New(options)
	if err != nil {
		t.Fatal(err)
	}
	b.handler = c.Handler()
	return b
}

func (b *browser) get(target string) string {
	b.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+target, nil)
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		b.t.Errorf("%s: %d", target, w.Code)
	}
	return w.Body.String()
}

// post sends a form, and returns the status, where the browser goes on, and the page.
func (b *browser) post(path string, form url.Values) (code int, to, body string) {
	b.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	b.cookies = append(b.cookies, w.Result().Cookies()...)
	return w.Code, w.Header().Get("Location"), w.Body.String()
}
