package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/base/plural"
)

const (
	registry = "/_etcd/registry/"
	// maxMembers and maxEntryBytes bound what is taken from the registry.
	maxMembers    = 1000
	maxEntryBytes = 4 << 10
	// pause is how long to wait after a failure, or without news, before looking again.
	pause = time.Second
)

// The refusals; etcd's words begin them.
var (
	ErrFull     = errors.New("discovery: cluster is full")
	ErrNoSize   = errors.New("discovery: size key not found")
	ErrBadSize  = errors.New("discovery: size key is bad")
	ErrBadEntry = errors.New("discovery: an entry is no member")
)

// Registry is what is asked of the running cluster: *clientv3.Client.
type Registry interface {
	Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error)
	Put(ctx context.Context, key, value string, options ...clientv3.OpOption) (*clientv3.PutResponse, error)
}

// Options of Join.
type Options struct {
	Registry Registry
	Token    string
	Timeout  time.Duration // of one request
	Logger   *slog.Logger
	Wait     func(ctx context.Context, d time.Duration) error // nil: by the wall clock
}

// Join registers this member, and returns all members of the new cluster as --initial-cluster lists them, once they are
// there. id is this member's, in hex, and entry its NAME=URL,NAME=URL. A registry that does not answer is asked again until
// ctx ends.
func Join(ctx context.Context, o Options, id, entry string) (string, error) {
	if o.Wait == nil {
		o.Wait = broadcast.Pause
	}
	j := joining{Options: o, own: registry + o.Token + "/members/" + id}
	for said := ""; ; {
		members, size, err := j.look(ctx)
		if err == nil && !members.has(j.own) {
			if len(members) >= size {
				return "", fmt.Errorf("%w: %s registered under this token, and it asks for %d: take another "+
					"token, or join the running cluster", ErrFull, plural.Of(len(members), "member has", "members have"), size)
			}
			if err = j.register(ctx, entry); err == nil {
				continue // what others have registered meanwhile may have been first
			}
		}
		switch {
		case err == nil && members.has(j.own) && len(members) >= size:
			return members.first(size, j.own)
		case final(err):
			return "", err
		}
		if now := fmt.Sprint(len(members), err); now != said {
			said = now
			if err != nil {
				o.Logger.Warn("the cluster at --discovery-endpoints does not answer: it is asked again", "err", err)
			} else {
				o.Logger.Info("waiting for members to register", "registered", len(members), "size", size)
			}
		}
		if err := o.Wait(ctx, pause); err != nil {
			return "", fmt.Errorf("discovery: stopped while waiting for other members: %w", err)
		}
	}
}

func final(err error) bool {
	return errors.Is(err, ErrNoSize) || errors.Is(err, ErrBadSize) || errors.Is(err, ErrBadEntry) || errors.Is(err, ErrFull)
}

type joining struct {
	Options
	own string // the key of this member
}

// look reads the registry at one revision.
func (j *joining) look(ctx context.Context) (registered, int, error) {
	ctx, cancel := context.WithTimeout(ctx, j.Timeout)
	defer cancel()
	prefix := registry + j.Token + "/"
	answer, err := j.Registry.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithLimit(maxMembers+2))
	if err != nil {
		return nil, 0, err
	}
	if answer.More {
		return nil, 0, fmt.Errorf("%w: more than %d have registered under this token", ErrFull, maxMembers)
	}
	var members registered
	size := 0
	for _, kv := range answer.Kvs {
		switch key := string(kv.Key); {
		case key == prefix+"_config/size":
			if size, err = strconv.Atoi(string(kv.Value)); err != nil || size < 1 || size > maxMembers {
				return nil, 0, fmt.Errorf("%w: %s is %q, not a number from 1 to %d", ErrBadSize, key, clip(kv.Value),
					maxMembers)
			}
		case strings.HasPrefix(key, prefix+"members/"):
			members = append(members, kv)
		}
	}
	if size == 0 {
		return nil, 0, fmt.Errorf("%w: write how many members the cluster has to %s_config/size", ErrNoSize, prefix)
	}
	slices.SortFunc(members, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) })
	return members, size, nil
}

func (j *joining) register(ctx context.Context, entry string) error {
	ctx, cancel := context.WithTimeout(ctx, j.Timeout)
	defer cancel()
	_, err := j.Registry.Put(ctx, j.own, entry)
	return err
}

// registered are the keys of members, in the order in which they registered.
type registered []*mvccpb.KeyValue

func (r registered) has(key string) bool {
	return slices.ContainsFunc(r, func(kv *mvccpb.KeyValue) bool { return string(kv.Key) == key })
}

// first joins the entries of those that make the cluster; this member must be one of them.
func (r registered) first(size int, own string) (string, error) {
	r = r[:size]
	if !r.has(own) {
		return "", fmt.Errorf("%w: %s registered before this member: take another token, or join the running cluster",
			ErrFull, plural.Of(size, "other"))
	}
	entries := make([]string, size)
	for i, kv := range r {
		if len(kv.Value) > maxEntryBytes || !strings.Contains(string(kv.Value), "=") {
			return "", fmt.Errorf("%w: %s is %q, not NAME=URL: delete it", ErrBadEntry, kv.Key, clip(kv.Value))
		}
		entries[i] = string(kv.Value)
	}
	return strings.Join(entries, ","), nil
}

// clip keeps a value from filling a line of the log.
func clip(value []byte) []byte { return value[:min(len(value), 64)] }
