package users

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/keyrange"
	"github.com/quorate/quorate/internal/console/page"
)

const (
	// mostRoles is how many roles of a user are looked at.
	mostRoles = 100
	// mostParts is how many permissions are named that permit a part of what was asked for.
	mostParts = 5
)

// verdict is whether a user may read, or write, what was asked for.
type verdict struct {
	Access string
	May    bool
	By     []string // the permissions that permit it, or a part of it
	Why    string
}

type checkView struct {
	User, Key, Kind string // as they were typed
	Asked           bool
	Fault           string
	Keys            string // in words
	Off             bool   // authentication is off
	Verdicts        []verdict
}

// check says whether a user may reach keys, and by which permission.
func check(ctx context.Context, r *page.Request) (any, error) {
	v := checkView{User: r.Query.Get("of"), Key: r.Query.Get("key"), Kind: r.Query.Get("kind"), Asked: r.Query.Has("of")}
	if !v.Asked {
		return v, nil
	}
	key, end, err := typedRange(v.Kind, v.Key, "")
	var form page.FormError
	if errors.As(err, &form) {
		v.Fault = string(form)
		return v, nil
	}
	v.Keys = keysOf(key, end)
	client := pb.NewAuthClient(r.Conn)
	now, err := client.AuthStatus(ctx, &pb.AuthStatusRequest{})
	if err != nil {
		return nil, err
	}
	v.Off = !now.GetEnabled()
	user, err := client.UserGet(ctx, &pb.AuthUserGetRequest{Name: v.User})
	switch {
	case errors.Is(rpctypes.Error(err), rpctypes.ErrUserNotFound) || v.User == "":
		v.Fault = fmt.Sprintf("There is no user %s.", shown(v.User))
		return v, nil
	case err != nil:
		return nil, err
	case len(user.GetRoles()) > mostRoles:
		v.Fault = fmt.Sprintf("The user has %d roles, and this page looks at %d at most: ask with the command.",
			len(user.GetRoles()), mostRoles)
		return v, nil
	}
	has, err := rolesOf(ctx, client, user.GetRoles())
	if err != nil {
		return nil, err
	}
	v.Verdicts, err = judge(v.User, user.GetRoles(), has, key, end)
	return v, err
}

// rolesOf asks for roles. One that was deleted meanwhile is left out.
func rolesOf(ctx context.Context, client pb.AuthClient, names []string) (all []*authpb.Role, err error) {
	all = make([]*authpb.Role, len(names))
	err = each(len(names), func(i int) (err error) {
		if names[i] == auth.RootRole {
			return nil // it permits everything, whether it is there or not
		}
		all[i], err = roleOf(ctx, client, names[i])
		return err
	})
	return slices.DeleteFunc(all, func(role *authpb.Role) bool { return role == nil }), err
}

// judge asks package auth, on a state of this user and its roles alone.
func judge(name string, names []string, roles []*authpb.Role, key, end []byte) ([]verdict, error) {
	users := []*authpb.User{{Name: []byte(name), Roles: names}}
	if name != auth.RootUser || !slices.Contains(names, auth.RootRole) {
		if name == auth.RootUser { // no cluster with authentication has it like this
			return []verdict{{Access: "read and write", Why: "it lacks the role root: authentication cannot be enabled"}}, nil
		}
		users = append(users, &authpb.User{Name: []byte(auth.RootUser), Roles: []string{auth.RootRole}})
	}
	rows, err := auth.Imported(true, 1, users, roles)
	if err != nil {
		return nil, err
	}
	state := auth.New()
	for i := range rows {
		if err := state.Load(rows[i].Key, rows[i].Value); err != nil {
			return nil, err
		}
	}
	if err := state.Loaded(); err != nil {
		return nil, err
	}
	by := state.Check(auth.Credentials{User: name, Revision: auth.AnyRevision})
	read, write := by.Read(key, end) == nil, by.Write(key, end) == nil
	if by.Free() {
		why := "it has the role root, which may do everything"
		return []verdict{{"read", true, nil, why}, {"write", true, nil, why}}, nil
	}
	wanted := keyrange.From(key, end)
	return []verdict{
		reason(verdict{Access: "read", May: read}, roles, wanted, authpb.WRITE),
		reason(verdict{Access: "write", May: write}, roles, wanted, authpb.READ),
	}, nil
}

// reason names the permissions that permit a range, or a part of it. other is the kind of access that is not asked for.
func reason(v verdict, roles []*authpb.Role, wanted keyrange.Range, other authpb.Permission_Type) verdict {
	var parts []string
	for _, role := range roles {
		for _, p := range role.GetKeyPermission() {
			if p.GetPermType() == other {
				continue
			}
			r := keyrange.From(p.GetKey(), p.GetRangeEnd())
			words := fmt.Sprintf("role %s: %s %s", shown(string(role.GetName())), accessOf(p.GetPermType()),
				keysOf(p.GetKey(), p.GetRangeEnd()))
			switch {
			case v.May && r.Covers(wanted):
				v.By, v.Why = []string{words}, "one permission covers it"
				return v
			case r.Overlaps(wanted) && len(parts) < mostParts:
				parts = append(parts, words)
			}
		}
	}
	v.By = parts
	switch {
	case v.May:
		v.Why = "several permissions cover it together"
	case len(parts) > 0:
		v.Why = "permissions cover only a part of it"
	case len(roles) == 0:
		v.Why = "it has no role that permits anything"
	default:
		v.Why = "no permission of its roles covers it"
	}
	return v
}

func checkCommand(r *page.Request) string {
	if user := r.Query.Get("of"); user != "" && typeable(user) {
		return r.Command("user", "get", user, "--detail")
	}
	return ""
}
