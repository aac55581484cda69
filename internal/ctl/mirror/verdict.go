package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/plural"
)

// maxExamples is how many differences are named.
const maxExamples = 10

// Verdict is what a comparison of everything has found.
type Verdict struct {
	SourceRevision int64 `json:"source_revision"`
	TargetRevision int64 `json:"target_revision"`
	// SameRevisions: each key has the revisions that it has at the source, so that clients may go on watching where they were.
	SameRevisions bool     `json:"same_revisions"`
	Keys          int      `json:"keys"`
	Leases        int      `json:"leases"`
	Users         string   `json:"users"` // "equal", "not compared: …" or what differs
	Differences   int      `json:"differences"`
	Examples      []string `json:"examples,omitempty"`
	Safe          bool     `json:"safe"`
}

func (v *Verdict) differ(format string, args ...any) {
	if v.Differences++; len(v.Examples) < maxExamples {
		v.Examples = append(v.Examples, fmt.Sprintf(format, args...))
	}
}

// judge compares everything. It returns nil if the source changed meanwhile.
func (m *Mirror) judge(ctx context.Context) (*Verdict, error) {
	v := &Verdict{SourceRevision: m.done, SameRevisions: true}
	now, err := m.options.Target.Get(ctx, positionKey, clientv3.WithCountOnly())
	if err != nil {
		return nil, fmt.Errorf("the target: %w", err)
	}
	v.TargetRevision = now.Header.Revision
	source, target := newPages(m.options.Source, m.done), newPages(m.options.Target, v.TargetRevision)
	err = merge(ctx, source, target, func(from, to *mvccpb.KeyValue) error {
		v.Keys++
		switch {
		case from == nil:
			v.differ("key %q is at the target alone", to.Key)
		case to == nil:
			v.differ("key %q is missing at the target", from.Key)
		case !equal(from, to, false):
			v.differ("key %q has another value or lease at the target", from.Key)
		case !equal(from, to, true):
			v.SameRevisions = false
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := m.judgeLeases(ctx, v); err != nil {
		return nil, err
	}
	if err := m.judgeUsers(ctx, v); err != nil {
		return nil, err
	}
	after, err := m.options.Source.Get(ctx, positionKey, clientv3.WithCountOnly())
	if err != nil {
		return nil, fmt.Errorf("the source: %w", err)
	}
	if after.Header.Revision != m.done {
		return nil, nil
	}
	v.SameRevisions = v.SameRevisions && v.TargetRevision == v.SourceRevision
	if v.Safe = v.Differences == 0; v.Safe {
		return v, m.target.remove(ctx)
	}
	return v, nil
}

// leaseAttempts is how often leases are compared until they are equal: some end meanwhile, without a new revision.
const leaseAttempts = 10

// judgeLeases compares which leases there are, and for how long they were granted.
func (m *Mirror) judgeLeases(ctx context.Context, v *Verdict) error {
	for attempt := 1; ; attempt++ {
		if err := m.leases.look(ctx); err != nil {
			return err
		}
		if err := m.leases.settle(ctx, m.done); err != nil {
			return err
		}
		to, err := granted(ctx, m.options.Target)
		if err != nil {
			return fmt.Errorf("the leases of the target: %w", err)
		}
		from, err := granted(ctx, m.options.Source)
		if err != nil {
			return fmt.Errorf("the leases of the source: %w", err)
		}
		if v.Leases = len(from); maps.Equal(from, to) {
			return nil
		}
		if attempt == leaseAttempts {
			v.differInLeases(from, to)
			return nil
		}
		if err := wait(ctx, tick); err != nil {
			return err
		}
	}
}

func (v *Verdict) differInLeases(from, to map[clientv3.LeaseID]int64) {
	for id, ttl := range from {
		if other, there := to[id]; !there {
			v.differ("lease %x is missing at the target", int64(id))
		} else if ttl != other {
			v.differ("lease %x is granted for %s at the source, and for %d at the target", int64(id),
				plural.Of(ttl, "second"), other)
		}
	}
	for id := range to {
		if _, there := from[id]; !there {
			v.differ("lease %x is at the target alone", int64(id))
		}
	}
}

func granted(ctx context.Context, client *clientv3.Client) (map[clientv3.LeaseID]int64, error) {
	list, err := client.Leases(ctx)
	if err != nil {
		return nil, err
	}
	ttls := map[clientv3.LeaseID]int64{}
	for _, lease := range list.Leases {
		there, err := client.TimeToLive(ctx, lease.ID)
		if err != nil {
			return nil, err
		}
		if there.TTL >= 0 {
			ttls[lease.ID] = there.GrantedTTL
		}
	}
	return ttls, nil
}

// judgeUsers compares users, roles and permissions, if both sides let this user see them. Passwords cannot be read.
func (m *Mirror) judgeUsers(ctx context.Context, v *Verdict) error {
	from, err := users(ctx, m.options.Source)
	var to map[string]string
	if err == nil {
		to, err = users(ctx, m.options.Target)
	}
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied), errors.Is(err, rpctypes.ErrUserEmpty):
		v.Users = "not compared: that needs the user root on both sides"
		return nil
	case err != nil:
		return fmt.Errorf("compare users: %w", err)
	}
	before := v.Differences
	for _, name := range names(from, to) {
		if from[name] != to[name] {
			v.differ("%s: %s at the source, %s at the target", name, orNone(from[name]), orNone(to[name]))
		}
	}
	v.Users = "equal"
	if before != v.Differences {
		v.Users = "they differ: passwords can not be copied from a running cluster; begin with a target that was restored " +
			"from a snapshot, or add them there by hand"
	}
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func names(a, b map[string]string) (all []string) {
	for _, m := range []map[string]string{a, b} {
		for name := range m {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// users describes all that is known of users and roles, each in one line.
func users(ctx context.Context, client *clientv3.Client) (map[string]string, error) {
	status, err := client.AuthStatus(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]string{"authentication": map[bool]string{true: "enabled", false: "disabled"}[status.Enabled]}
	list, err := client.UserList(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range list.Users {
		user, err := client.UserGet(ctx, name)
		if err != nil {
			return nil, err
		}
		slices.Sort(user.Roles)
		all["user "+name] = "roles " + strings.Join(user.Roles, " ")
	}
	roles, err := client.RoleList(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range roles.Roles {
		role, err := client.RoleGet(ctx, name)
		if err != nil {
			return nil, err
		}
		var permissions []string
		for _, p := range role.Perm {
			permissions = append(permissions, fmt.Sprintf("%v %q-%q", p.PermType, p.Key, p.RangeEnd))
		}
		slices.Sort(permissions)
		all["role "+name] = "permits " + strings.Join(permissions, ", ")
	}
	return all, nil
}
