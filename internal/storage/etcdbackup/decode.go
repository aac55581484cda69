package etcdbackup

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// revisionBytes is the length of a key in the bucket "key"; a tombstone has one more.
const revisionBytes = 8 + 1 + 8

// maxSmall bounds the buckets that are read as a whole: members, leases and the like are much less.
const maxSmall = 1 << 20

// Version is one version of a key.
type Version struct {
	Rev       kv.Rev
	Tombstone bool
	KV        kv.KeyValue // of a tombstone only the key
	// Bump marks no key at all, but a revision: `etcdutl snapshot restore --bump-revision` writes one.
	Bump bool
}

func decodeRevision(key []byte) (rev kv.Rev, tombstone bool, err error) {
	switch {
	case len(key) == revisionBytes+1 && key[revisionBytes] == 't':
		tombstone = true
	case len(key) != revisionBytes:
		return rev, false, damagedf("revision %x", key)
	}
	main, sub := binary.BigEndian.Uint64(key), binary.BigEndian.Uint64(key[9:])
	if key[8] != '_' || main == 0 || main > uint64(kv.MaxRevision)-1 || sub > 1<<32-1 {
		return rev, false, damagedf("revision %x", key)
	}
	return kv.Rev{Main: kv.Revision(main), Sub: int64(sub)}, tombstone, nil
}

// DecodeVersion reads a row of the bucket "key". The Version points into the row's own copy.
func DecodeVersion(key, value []byte) (v Version, err error) {
	if v.Rev, v.Tombstone, err = decodeRevision(key); err != nil {
		return v, err
	}
	if len(value) == 0 && !v.Tombstone {
		v.Bump = true
		return v, nil
	}
	var p mvccpb.KeyValue
	if err := proto.Unmarshal(value, &p); err != nil {
		return v, damagedf("the version at revision %d is no key and value: %v", v.Rev.Main, err)
	}
	if len(p.Key) == 0 {
		return v, damagedf("the version at revision %d has no key", v.Rev.Main)
	}
	v.KV = kv.KeyValue{Key: p.Key, ModRevision: v.Rev.Main}
	if v.Tombstone {
		return v, nil
	}
	if p.ModRevision != int64(v.Rev.Main) || p.CreateRevision < 1 || p.CreateRevision > p.ModRevision || p.Version < 1 {
		return v, damagedf("key %q at revision %d: created at %d, modified at %d, version %d", p.Key, v.Rev.Main,
			p.CreateRevision, p.ModRevision, p.Version)
	}
	v.KV.Value, v.KV.CreateRevision, v.KV.Version = p.Value, kv.Revision(p.CreateRevision), p.Version
	v.KV.Lease = kv.LeaseID(p.Lease)
	return v, nil
}

// DecodeLease reads a row of the bucket "lease". The time that the lease had left is not in it: the lease begins anew.
func DecodeLease(key, value []byte) (id kv.LeaseID, ttlSeconds int64, err error) {
	if len(key) != 8 {
		return 0, 0, damagedf("lease %x", key)
	}
	for rest := value; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return 0, 0, damagedf("lease %x", key)
		}
		if rest = rest[n:]; kind == protowire.VarintType {
			var v uint64
			if v, n = protowire.ConsumeVarint(rest); n >= 0 && number == 1 {
				id = kv.LeaseID(v)
			} else if n >= 0 && number == 2 {
				ttlSeconds = int64(v)
			}
		} else {
			n = protowire.ConsumeFieldValue(number, kind, rest)
		}
		if n < 0 {
			return 0, 0, damagedf("lease %x", key)
		}
		rest = rest[n:]
	}
	if id == 0 || uint64(id) != binary.BigEndian.Uint64(key) || ttlSeconds > kv.MaxLeaseTTLSeconds {
		return 0, 0, damagedf("lease %x is of id %x for %d seconds", key, uint64(id), ttlSeconds)
	}
	return id, max(ttlSeconds, 1), nil
}

// Head is what a file says of itself beside its data.
type Head struct {
	Index     consensus.Index // of the last entry of etcd's log that is in the file
	Term      consensus.Term
	Compacted kv.Revision // the compaction that was begun last; zero: none
	Storage   string      // version of the schema; empty before etcd 3.6
}

var versionText = regexp.MustCompile(`^[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}$`)

func storageVersion(value []byte) string {
	if !versionText.Match(value) {
		return ""
	}
	return string(value)
}

// Head reads it.
func (f *File) Head(ctx context.Context) (h Head, err error) {
	err = f.Rows(ctx, "meta", func(key, value []byte) error {
		switch string(key) {
		case "consistent_index", "term":
			if len(value) != 8 {
				return damagedf("%s %x", key, value)
			}
			if n := binary.BigEndian.Uint64(value); string(key) == "term" {
				h.Term = consensus.Term(n)
			} else {
				h.Index = consensus.Index(n)
			}
		case "scheduledCompactRev", "finishedCompactRev":
			// etcd marks a compaction as begun before it deletes anything, and completes it at its next start.
			rev, tombstone, err := decodeRevision(value)
			if err != nil || tombstone {
				return damagedf("%s %x", key, value)
			}
			h.Compacted = max(h.Compacted, rev.Main)
		case "storageVersion":
			h.Storage = storageVersion(value)
		}
		return nil
	})
	return h, err
}

// Users are users and roles as etcd stores them.
type Users struct {
	Enabled  bool
	Revision uint64
	Users    []*authpb.User
	Roles    []*authpb.Role
}

// Users reads users and roles. It reads no more than limitBytes of them.
func (f *File) Users(ctx context.Context, limitBytes int) (u Users, err error) {
	err = f.Rows(ctx, "auth", func(key, value []byte) error {
		switch string(key) {
		case "authEnabled":
			u.Enabled = len(value) == 1 && value[0] == 1
		case "authRevision":
			if len(value) != 8 {
				return damagedf("authRevision %x", value)
			}
			u.Revision = binary.BigEndian.Uint64(value)
		}
		return nil
	})
	take := func(bucket string, m proto.Message, keep func(name string) bool) error {
		return f.Rows(ctx, bucket, func(key, value []byte) error {
			if limitBytes -= len(key) + len(value); limitBytes < 0 {
				return fmt.Errorf("%w: users and roles take more than is permitted", ErrDamaged)
			}
			if err := proto.Unmarshal(value, m); err != nil || !keep(string(key)) {
				return damagedf("%s %q", bucket, key)
			}
			return nil
		})
	}
	if err == nil {
		var user authpb.User
		err = take("authUsers", &user, func(name string) bool {
			u.Users = append(u.Users, proto.CloneOf(&user))
			return string(user.Name) == name
		})
	}
	if err == nil {
		var role authpb.Role
		err = take("authRoles", &role, func(name string) bool {
			u.Roles = append(u.Roles, proto.CloneOf(&role))
			return string(role.Name) == name
		})
	}
	return u, err
}

// Members reads the members of the cluster that wrote the file.
func (f *File) Members(ctx context.Context) (members []Member, err error) {
	left := maxSmall
	err = f.Rows(ctx, "members", func(key, value []byte) error {
		var m Member
		if left -= len(value); left < 0 {
			return damagedf("the list of members is too long")
		}
		if err := json.Unmarshal(value, &m); err != nil || m.ID == 0 || string(hexID(m.ID)) != string(key) {
			return damagedf("member %q", key)
		}
		members = append(members, m)
		return nil
	})
	return members, err
}

// Count tells how many rows a bucket has.
func (f *File) Count(ctx context.Context, bucket string) (rows int, err error) {
	err = f.Rows(ctx, bucket, func(_, _ []byte) error {
		rows++
		return nil
	})
	return rows, err
}
