package users

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/console/page"
)

const (
	// mostRows is how many users or roles are asked for in one look, and askedAtOnce how many of them at once.
	mostRows    = 50
	askedAtOnce = 8
	// mostPermissions is how many permissions of a role are shown.
	mostPermissions = 20
)

// stateView is whether users must log in.
type stateView struct {
	Enabled  bool
	Revision uint64
	User     string // the one who looks
	Admin    bool
	Enable   string // the command lines, one a line
}

func state(ctx context.Context, r *page.Request) (any, error) {
	answer, err := pb.NewAuthClient(r.Conn).AuthStatus(ctx, &pb.AuthStatusRequest{})
	if err != nil {
		return nil, err
	}
	v := stateView{Enabled: answer.GetEnabled(), Revision: answer.GetAuthRevision(), User: r.User, Admin: r.Admin}
	v.Enable = strings.Join([]string{r.Command("user", "add", auth.RootUser),
		r.Command("user", "grant-role", auth.RootUser, auth.RootRole), r.Command("auth", "enable")}, "\n")
	return v, nil
}

// selection is which names of a list are shown.
type selection struct {
	Find, After string
	Shown       []string
	More        int
}

// selected chooses the names that have a text in them, behind a name, at most mostRows. Names are sorted.
func selected(names []string, find, after string) selection {
	s := selection{Find: find, After: after}
	slices.Sort(names)
	for _, name := range names {
		if name <= after && after != "" || !strings.Contains(strings.ToLower(name), strings.ToLower(find)) {
			continue
		}
		if len(s.Shown) == mostRows {
			s.More++
			continue
		}
		s.Shown = append(s.Shown, name)
	}
	return s
}

// Last is the last name that is shown.
func (s selection) Last() string {
	if len(s.Shown) == 0 {
		return ""
	}
	return s.Shown[len(s.Shown)-1]
}

// userRow is a user as the table shows it.
type userRow struct {
	Name  string
	Roles []string
	Root  bool // it has the role root
	Self  bool // it looks
}

type listView struct {
	selection
	Rows  []userRow
	All   int  // users that there are
	Alone bool // only the user who looks is shown
	Admin bool
}

// list shows the users to root, and the user who looks to others.
func list(ctx context.Context, r *page.Request) (any, error) {
	client, v := pb.NewAuthClient(r.Conn), listView{Admin: r.Admin}
	names, alone, err := names(r, func() ([]string, error) {
		answer, err := client.UserList(ctx, &pb.AuthUserListRequest{})
		return answer.GetUsers(), err
	}, func() ([]string, error) { return []string{r.User}, nil })
	if err != nil {
		return nil, err
	}
	v.All, v.Alone, v.Admin = len(names), alone, r.Admin && !alone
	v.selection = selected(names, r.Query.Get("find"), r.Query.Get("after"))
	v.Rows = make([]userRow, len(v.Shown))
	err = each(len(v.Shown), func(i int) error {
		name := v.Shown[i]
		answer, err := client.UserGet(ctx, &pb.AuthUserGetRequest{Name: name})
		if errors.Is(rpctypes.Error(err), rpctypes.ErrUserNotFound) {
			return nil // deleted meanwhile
		}
		v.Rows[i] = userRow{Name: name, Roles: answer.GetRoles(), Root: slices.Contains(answer.GetRoles(), auth.RootRole),
			Self: name == r.User}
		return err
	})
	v.Rows = slices.DeleteFunc(v.Rows, func(u userRow) bool { return u.Name == "" })
	return v, err
}

// names asks for all names, or for those of the user who looks if it may see no others.
func names(r *page.Request, all, own func() ([]string, error)) (names []string, alone bool, err error) {
	names, err = all()
	if status.Code(err) == codes.PermissionDenied && r.User != "" {
		names, err = own()
		return names, true, err
	}
	return names, false, err
}

// each calls do for each number below n, a few at a time, and returns one of the errors.
func each(n int, do func(i int) error) error {
	var (
		turns = make(chan struct{}, askedAtOnce)
		waits = make([]func(), n)
		errs  = make([]error, n)
	)
	for i := range n {
		turns <- struct{}{}
		waits[i] = page.Go(func() {
			defer func() { <-turns }()
			errs[i] = do(i)
		})
	}
	for _, wait := range waits {
		wait()
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// permissionRow is a permission as it is shown, and as a link to take it away has it.
type permissionRow struct {
	Access, Keys string
	Key, End     string // as packed returns them
}

type roleRow struct {
	Name        string
	Root        bool
	Permissions []permissionRow
	More        int
}

// Lines is how many lines of the table the role has.
func (r roleRow) Lines() int { return max(1, len(r.Permissions)+min(1, r.More)) }

// roleName is a role where its name stands.
type roleName struct {
	Name        string
	Root, Admin bool
}

// Of is the role where its name stands, with what can be done to it.
func (r roleRow) Of(admin bool) roleName { return roleName{r.Name, r.Root, admin} }

type rolesView struct {
	selection
	Rows  []roleRow
	All   int
	Alone bool
	Admin bool
}

// roles shows the roles to root, and their own ones to others.
func roles(ctx context.Context, r *page.Request) (any, error) {
	client, v := pb.NewAuthClient(r.Conn), rolesView{}
	names, alone, err := names(r, func() ([]string, error) {
		answer, err := client.RoleList(ctx, &pb.AuthRoleListRequest{})
		return answer.GetRoles(), err
	}, func() ([]string, error) {
		answer, err := client.UserGet(ctx, &pb.AuthUserGetRequest{Name: r.User})
		return answer.GetRoles(), err
	})
	if err != nil {
		return nil, err
	}
	v.All, v.Alone, v.Admin = len(names), alone, r.Admin && !alone
	v.selection = selected(names, r.Query.Get("findrole"), r.Query.Get("afterrole"))
	v.Rows = make([]roleRow, len(v.Shown))
	err = each(len(v.Shown), func(i int) error {
		found, err := roleOf(ctx, client, v.Shown[i])
		if found != nil {
			v.Rows[i] = rowOf(v.Shown[i], found)
		}
		return err
	})
	v.Rows = slices.DeleteFunc(v.Rows, func(row roleRow) bool { return row.Name == "" })
	return v, err
}

// roleOf asks for a role; nil: there is none. Every cluster that has authentication treats the role root as if it was there.
func roleOf(ctx context.Context, client pb.AuthClient, name string) (*authpb.Role, error) {
	answer, err := client.RoleGet(ctx, &pb.AuthRoleGetRequest{Role: name})
	switch {
	case errors.Is(rpctypes.Error(err), rpctypes.ErrRoleNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &authpb.Role{Name: []byte(name), KeyPermission: answer.GetPerm()}, nil
}

func rowOf(name string, role *authpb.Role) roleRow {
	row := roleRow{Name: name, Root: name == auth.RootRole}
	for i, p := range role.GetKeyPermission() {
		if i == mostPermissions {
			row.More = len(role.GetKeyPermission()) - i
			break
		}
		row.Permissions = append(row.Permissions, permissionRow{Access: accessOf(p.GetPermType()),
			Keys: keysOf(p.GetKey(), p.GetRangeEnd()), Key: packed(p.GetKey()), End: packed(p.GetRangeEnd())})
	}
	return row
}
