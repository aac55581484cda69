package keys

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/undelete"
)

// rights are the ranges that a user may read, for a reader who may not read the one that was asked for.
type rights struct {
	User   string
	Known  bool // the member says what the roles of the user permit
	Ranges []readable
	More   bool // there are more
}

// readable is a range that a role permits to read.
type readable struct {
	Words, Href, Role string
	Writes            bool
}

// Bounds of the roles that are looked up.
const (
	mostRoles  = 16
	mostRanges = 50
)

// rightsOf returns the rights of the user if an error says that they do not suffice, or the error.
func rightsOf(ctx context.Context, r *page.Request, err error) (*rights, error) {
	if status.Code(err) != codes.PermissionDenied && !errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
		return nil, err
	}
	auth, found := pb.NewAuthClient(r.Conn), &rights{User: r.User}
	user, askErr := auth.UserGet(ctx, &pb.AuthUserGetRequest{Name: r.User})
	if askErr != nil {
		return found, nil
	}
	found.Known = true
	for i, name := range user.GetRoles() {
		if i == mostRoles {
			found.More = true
			break
		}
		role, err := auth.RoleGet(ctx, &pb.AuthRoleGetRequest{Role: name})
		if err != nil {
			found.Known = false
			continue
		}
		found.add(name, role.GetPerm())
	}
	return found, nil
}

func (f *rights) add(role string, permissions []*authpb.Permission) {
	for _, p := range permissions {
		if p.GetPermType() == authpb.Permission_WRITE {
			continue
		}
		if len(f.Ranges) == mostRanges {
			f.More = true
			return
		}
		one := readable{Role: role, Writes: p.GetPermType() == authpb.Permission_READWRITE}
		one.Words, one.Href = wordsOf(p.GetKey(), p.GetRangeEnd())
		f.Ranges = append(f.Ranges, one)
	}
}

// wordsOf says which keys a range has, with a link to them where they have a prefix in common.
func wordsOf(key, end []byte) (words, href string) {
	if len(end) == 0 {
		return "the key " + short(key), toKey("/keys/key", key)
	}
	for _, prefix := range [][]byte{key, nil} {
		if first, behind := undelete.Prefix(prefix); string(first) == string(key) && string(behind) == string(end) {
			if len(prefix) == 0 || string(key) == "\x00" {
				return "all keys", "/keys"
			}
			return "the keys that begin with " + short(key), toPrefix("/keys", key)
		}
	}
	if string(end) == "\x00" {
		return "the keys from " + short(key) + " on", ""
	}
	return "the keys from " + short(key) + " up to, and without, " + short(end), ""
}
