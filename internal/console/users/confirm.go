package users

import (
	"context"
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/console/page"
)

// mostHolders is how many users are asked whether they have a role that is to be deleted.
const mostHolders = 200

// confirmView is what an action takes away.
type confirmView struct {
	Do, User, Role, Key, End string // fields of the form; the last two are packed
	Title                    string
	Loses                    []string // a sentence each
	Typed                    string   // the name to type
	Button                   string
	Password                 bool // a new one is asked for
	Admin                    bool
	Fault                    string // why there is nothing to do
}

// confirm says what an action takes away, from what there is now.
func confirm(ctx context.Context, r *page.Request) (any, error) {
	v := &confirmView{Do: r.Query.Get("do"), User: r.Query.Get("user"), Role: r.Query.Get("role"), Key: r.Query.Get("key"),
		End: r.Query.Get("end"), Admin: r.Admin, Typed: r.Query.Get("user")}
	client := pb.NewAuthClient(r.Conn)
	var err error
	switch v.Do {
	case setPassword, deleteUser, revokeRole:
		err = v.ofUser(ctx, client, r)
	case deleteRole, revokePermission:
		err = v.ofRole(ctx, client)
	default:
		v.Fault = "This page is reached from the page of users, by a link beside the user or role that is to be changed."
	}
	switch {
	case errors.Is(rpctypes.Error(err), rpctypes.ErrUserNotFound):
		v.Fault, err = fmt.Sprintf("There is no user %s: it was deleted meanwhile, or never was.", shown(v.User)), nil
	case errors.Is(rpctypes.Error(err), rpctypes.ErrRoleNotFound):
		v.Fault, err = fmt.Sprintf("There is no role %s: it was deleted meanwhile, or never was.", shown(v.Role)), nil
	}
	return v, err
}

func (v *confirmView) ofUser(ctx context.Context, client pb.AuthClient, r *page.Request) error {
	answer, err := client.UserGet(ctx, &pb.AuthUserGetRequest{Name: v.User})
	if err != nil {
		return err
	}
	name := shown(v.User)
	switch v.Do {
	case setPassword:
		v.Title, v.Button, v.Password = "Give "+name+" a new password", "Set the password", true
		v.Loses = []string{"The former password stops working.", "All sessions of the user end: it must log in again."}
	case deleteUser:
		v.Title, v.Button = "Delete the user "+name, "Delete the user"
		v.Loses = []string{"All sessions of the user end, and it cannot log in any more."}
		if n := len(answer.GetRoles()); n > 0 {
			v.Loses = append(v.Loses, "It has the roles "+listed(answer.GetRoles())+", which stay.")
		}
	case revokeRole:
		v.Title, v.Button = fmt.Sprintf("Revoke the role %s of the user %s", shown(v.Role), name), "Revoke the role"
		if !slices.Contains(answer.GetRoles(), v.Role) {
			v.Fault = fmt.Sprintf("The user %s does not have the role %s.", name, shown(v.Role))
			return nil
		}
		if err := v.permissions(ctx, client); err != nil {
			return err
		}
	}
	if v.User == r.User {
		v.Loses = append(v.Loses, "This is the user by which you are logged in.")
	}
	return nil
}

// permissions adds what the role permits, which the user loses unless another role permits it, too.
func (v *confirmView) permissions(ctx context.Context, client pb.AuthClient) error {
	role, err := roleOf(ctx, client, v.Role)
	if err != nil || role == nil {
		return err
	}
	row := rowOf(v.Role, role)
	for _, p := range row.Permissions {
		v.Loses = append(v.Loses, fmt.Sprintf("It may not %s %s any more, unless another role permits it.", p.Access, p.Keys))
	}
	if row.More > 0 {
		v.Loses = append(v.Loses, fmt.Sprintf("And so for %d more permissions.", row.More))
	}
	return nil
}

func (v *confirmView) ofRole(ctx context.Context, client pb.AuthClient) error {
	role, err := roleOf(ctx, client, v.Role)
	v.Typed = v.Role
	switch {
	case err != nil:
		return err
	case role == nil:
		return rpctypes.ErrRoleNotFound
	case v.Do == deleteRole:
		v.Title, v.Button = "Delete the role "+shown(v.Role), "Delete the role"
		return v.holders(ctx, client)
	}
	key, ok := unpacked(v.Key)
	end, good := unpacked(v.End)
	v.Title, v.Button = "Revoke a permission of the role "+shown(v.Role), "Revoke the permission"
	for _, p := range role.GetKeyPermission() {
		if ok && good && string(p.GetKey()) == string(key) && string(p.GetRangeEnd()) == string(end) {
			v.Loses = []string{fmt.Sprintf("Users with this role may not %s %s any more, unless another permission covers it.",
				accessOf(p.GetPermType()), keysOf(key, end)), "Watches of these keys that the users have open end."}
			return nil
		}
	}
	v.Fault = fmt.Sprintf("The role %s does not have this permission: it was revoked, or never granted.", shown(v.Role))
	return nil
}

// holders adds which users have the role.
func (v *confirmView) holders(ctx context.Context, client pb.AuthClient) error {
	answer, err := client.UserList(ctx, &pb.AuthUserListRequest{})
	if err != nil {
		return err
	}
	names := slices.Sorted(slices.Values(answer.GetUsers()))
	asked := names[:min(len(names), mostHolders)]
	has := make([]bool, len(asked))
	err = each(len(asked), func(i int) error {
		user, err := client.UserGet(ctx, &pb.AuthUserGetRequest{Name: asked[i]})
		if errors.Is(rpctypes.Error(err), rpctypes.ErrUserNotFound) {
			return nil
		}
		has[i] = slices.Contains(user.GetRoles(), v.Role)
		return err
	})
	var holders []string
	for i, name := range asked {
		if has[i] {
			holders = append(holders, name)
		}
	}
	switch {
	case len(names) > len(asked):
		v.Loses = append(v.Loses, fmt.Sprintf("All users that have it lose it. Of the first %d of %d users by name: %s.",
			len(asked), len(names), listed(holders)))
	case len(holders) == 0:
		v.Loses = append(v.Loses, "No user has it.")
	default:
		v.Loses = append(v.Loses, "These users lose it: "+listed(holders)+".")
	}
	return err
}

// mostListed is how many names a sentence has.
const mostListed = 20

// listed is names in a sentence.
func listed(names []string) (text string) {
	if len(names) == 0 {
		return "none"
	}
	for i, name := range names {
		switch {
		case i == mostListed:
			return text + fmt.Sprintf(" and %d more", len(names)-i)
		case i > 0:
			text += ", "
		}
		text += shown(name)
	}
	return text
}

// confirmCommand is the command line that does the same; empty: none can. No line has a password: the command asks for it.
func confirmCommand(r *page.Request) string {
	user, role := r.Query.Get("user"), r.Query.Get("role")
	switch r.Query.Get("do") {
	case setPassword:
		return command(r, []string{user}, "user", "passwd", user)
	case deleteUser:
		return command(r, []string{user}, "user", "delete", user)
	case deleteRole:
		return command(r, []string{role}, "role", "delete", role)
	case revokeRole:
		return command(r, []string{user, role}, "user", "revoke-role", user, role)
	case revokePermission:
		key, ok := unpacked(r.Query.Get("key"))
		end, good := unpacked(r.Query.Get("end"))
		if words, can := rangeWords(key, end); ok && good && can {
			return command(r, []string{role}, append([]string{"role", "revoke-permission", role}, words...)...)
		}
	}
	return ""
}

// command is a command line, if a shell takes the names in it.
func command(r *page.Request, names []string, words ...string) string {
	if !typeable(names...) {
		return ""
	}
	return r.Command(words...)
}
