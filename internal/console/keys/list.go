package keys

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
)

// Bounds of a page of the tree.
const (
	mostEntries = 100
	mostProbes  = 100     // streams that are opened
	mostRead    = 4 << 20 // bytes of keys
	mostSized   = 8 << 20 // bytes of values whose sizes the member looks up
	// countPatience is how long keys are counted. The member counts a range without a walk over it once it has counted all
	// keys after its start.
	countPatience = 250 * time.Millisecond
	// sizePatience is how long sizes are looked up.
	sizePatience = 600 * time.Millisecond
)

// entry is a child of a prefix: a key, or all that begins alike up to the next separator.
type entry struct {
	key    []byte
	folder bool
	kv     *mvccpb.KeyValue      // of a key, without its value and lease
	now    *quoratepb.KeyVersion // of a key; nil: it was not looked up
}

// level finds the children of a prefix with a bounded number of short streams: what lies below a child is jumped over.
type level struct {
	kv       pb.KVClient
	prefix   []byte
	end      []byte
	revision int64
	entries  []entry
	probes   int
	bytes    int
	passed   []byte // the last key that was looked at
}

// find adds entries from a key on, and returns where the next page begins; nil: the level is complete.
func (l *level) find(ctx context.Context, at []byte) (next []byte, err error) {
	for at != nil {
		if len(l.entries) >= mostEntries || l.probes >= mostProbes || l.bytes >= mostRead {
			return at, nil
		}
		if at, err = l.probe(ctx, at); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// probe reads keys as long as they are children, or few lie below one child. It returns where to go on; nil: nothing is left. A
// stream that is not read to its end does not count the keys behind: a Range with a limit would.
func (l *level) probe(ctx context.Context, at []byte) (next []byte, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.probes++
	stream, err := l.kv.RangeStream(ctx, &pb.RangeRequest{Key: at, RangeEnd: l.end, Revision: l.revision, KeysOnly: true,
		Serializable: true})
	if err != nil {
		return nil, err
	}
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		chunk := message.GetRangeResponse()
		found := len(l.entries)
		for _, kv := range chunk.GetKvs() {
			if !l.add(kv) {
				return kv.GetKey(), nil
			}
		}
		if chunk.GetHeader() != nil && !chunk.GetMore() { // the last message
			return nil, nil
		}
		if fresh := len(l.entries) - found; 2*fresh < len(chunk.GetKvs()) {
			return l.behind(), nil
		}
		if l.bytes >= mostRead {
			return append(bytes.Clone(l.passed), 0), nil
		}
	}
}

// add adds the child that a key is, or lies below. It returns false if the page has no room for it.
func (l *level) add(kv *mvccpb.KeyValue) bool {
	key := kv.GetKey()
	if !bytes.HasPrefix(key, l.prefix) {
		return true
	}
	if n := len(l.entries); n > 0 && l.entries[n-1].folder && bytes.HasPrefix(key, l.entries[n-1].key) {
		l.note(key)
		return true
	}
	if len(l.entries) >= mostEntries {
		return false
	}
	one := entry{key: key, kv: kv}
	if at := bytes.IndexByte(key[len(l.prefix):], separator); at >= 0 {
		one = entry{key: key[:len(l.prefix)+at+1], folder: true}
	}
	l.entries = append(l.entries, one)
	l.note(key)
	return true
}

func (l *level) note(key []byte) {
	l.passed = key
	l.bytes += len(key)
}

// behind is the first key behind the last child; nil: the range ends there.
func (l *level) behind() []byte {
	if len(l.entries) == 0 {
		return nil
	}
	last := l.entries[len(l.entries)-1]
	next := append(bytes.Clone(last.key), 0)
	if last.folder {
		_, next = rangeOf(last.key)
	}
	if len(l.end) > 0 && !bytes.Equal(l.end, []byte{0}) && bytes.Compare(next, l.end) >= 0 {
		return nil
	}
	return next
}

// describe looks up the size and the lease of each key. The member reads no more than the bounds say; rows beyond them have
// none.
func (l *level) describe(ctx context.Context, history quoratepb.HistoryClient) {
	ctx, cancel := context.WithTimeout(ctx, sizePatience)
	defer cancel()
	read := int64(0)
	for i := range l.entries {
		one := &l.entries[i]
		if one.folder {
			continue
		}
		answer, err := history.Versions(ctx, &quoratepb.VersionsRequest{Key: one.key, Limit: 1, KeysOnly: true})
		if err != nil {
			return // the list is shown without
		}
		if v := answer.GetVersions(); len(v) > 0 && v[0].GetModRevision() == one.kv.GetModRevision() {
			one.now = v[0]
			if read += v[0].GetSize(); read > mostSized {
				return
			}
		}
	}
}

// row is an entry as the page shows it.
type row struct {
	Name, Href  string
	Folder      bool
	Known       bool // size and lease are
	Size        int64
	Version     int64
	ModRevision int64
	Lease       int64
	LeaseHref   string
}

// listView is the tree at one prefix.
type listView struct {
	Prefix   string
	All      bool // the prefix is empty
	Rows     []row
	Member   string
	Revision int64
	Counted  bool
	Count    int64
	Begins   string // the page begins at this key; empty: at the first one
	First    string // link to the first page
	More     string // link to the next page
	Cut      bool   // there is more, and no link can name where it goes on
	Deleted  string
	Rights   *rights // the user may not read this range
}

// list shows the children of a prefix.
func list(ctx context.Context, r *page.Request) (any, error) {
	prefix, err := prefixIn(r.Query)
	if err != nil {
		return nil, err
	}
	from, err := keyOf(r.Query.Get("from"))
	if err != nil {
		return nil, err
	}
	v := listView{Prefix: short(prefix), All: len(prefix) == 0, Member: r.Member, Deleted: toPrefix("/keys/deleted", prefix)}
	start, end := rangeOf(prefix)
	l := &level{kv: pb.NewKVClient(r.Conn), prefix: prefix, end: end}
	now, err := l.kv.Range(ctx, &pb.RangeRequest{Key: start, KeysOnly: true, Serializable: true})
	var next []byte
	if err == nil {
		l.revision = now.GetHeader().GetRevision()
		v.Revision = l.revision
		if bytes.Compare(from, start) > 0 {
			v.Begins, v.First, start = short(from), toPrefix("/keys", prefix), from
		}
		next, err = l.find(ctx, start)
	}
	if err != nil {
		v.Rights, err = rightsOf(ctx, r, err)
		return v, err
	}
	l.describe(ctx, quoratepb.NewHistoryClient(r.Conn))
	for i := range l.entries {
		v.Rows = append(v.Rows, rowOf(&l.entries[i], prefix))
	}
	if next != nil {
		v.More = toPrefix("/keys", prefix, "from", nameOf(next))
		v.Cut = v.More == ""
	}
	v.Count, v.Counted = l.count(ctx)
	return v, nil
}

// count counts the keys below the prefix, if that is quick.
func (l *level) count(ctx context.Context) (count int64, counted bool) {
	ctx, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	key, end := rangeOf(l.prefix)
	answer, err := l.kv.Range(ctx, &pb.RangeRequest{Key: key, RangeEnd: end, Revision: l.revision, CountOnly: true,
		Serializable: true})
	return answer.GetCount(), err == nil
}

func rowOf(e *entry, prefix []byte) row {
	if e.folder {
		return row{Name: short(e.key[nameFrom(prefix):]), Folder: true, Href: toPrefix("/keys", e.key)}
	}
	one := row{Name: short(e.key[nameFrom(prefix):]), Href: toKey("/keys/key", e.key), Version: e.kv.GetVersion(),
		ModRevision: e.kv.GetModRevision()}
	if len(e.key) == nameFrom(prefix) {
		one.Name = short(e.key)
	}
	if e.now != nil {
		one.Known, one.Size, one.Lease = true, e.now.GetSize(), e.now.GetLease()
		if one.Lease != 0 {
			one.LeaseHref = toLease(one.Lease)
		}
	}
	return one
}

// nameFrom is where the name of a child begins: behind the last separator of the prefix.
func nameFrom(prefix []byte) int { return bytes.LastIndexByte(prefix, separator) + 1 }
