package mvcc

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/quorate/quorate/internal/kv"
)

// Range reads at op.Revision, or at the published revision if that is not positive. It returns the published revision
// beside the result, also with an error. No context ends it: a call of a client uses RangeWithin or RangeInto.
func (s *Store) Range(op *kv.RangeOp) (kv.RangeResult, kv.Revision, error) {
	return s.read(op, true, nil)
}

// RangeWithin is Range for an answer whose memory is counted. An error of account ends the read.
func (s *Store) RangeWithin(op *kv.RangeOp, account kv.Account) (kv.RangeResult, kv.Revision, error) {
	return s.read(op, true, account)
}

// RangeUncounted is Range without the count of keys beyond the limit: Count is the number of keys that were read. Streams use
// it, which would otherwise count the rest of the range with each chunk.
func (s *Store) RangeUncounted(op *kv.RangeOp, account kv.Account) (kv.RangeResult, kv.Revision, error) {
	return s.read(op, false, account)
}

// RangeInto is Range, or RangeUncounted unless counted is set, whose pairs go to rows. The pairs that it keeps for sorting are
// counted in account.
func (s *Store) RangeInto(op *kv.RangeOp, counted bool, account kv.Account, rows Rows) (page Page, err error) {
	current, err := s.atRevision(op.Revision, func(rev kv.Revision) error {
		rows.Reset()
		page, err = s.rangeAt(op, rev, counted, account, rows)
		return err
	})
	page.Revision = current
	return page, err
}

func (s *Store) read(
	op *kv.RangeOp, counted bool, account kv.Account,
) (result kv.RangeResult, current kv.Revision, err error) {
	current, err = s.atRevision(op.Revision, func(rev kv.Revision) error {
		page, err := s.rangeAt(op, rev, counted, account, nil)
		result = page.Result
		return err
	})
	return result, current, err
}

// atRevision reads at the asked revision and returns the published one. A read of the current revision can be overtaken by
// writes and a compaction of that revision: then it tries again.
func (s *Store) atRevision(asked kv.Revision, read func(rev kv.Revision) error) (kv.Revision, error) {
	for {
		current := s.state.Load()
		rev, err := checkRevision(asked, current.revision, current.compact)
		if err == nil {
			err = read(rev)
		}
		if asked <= 0 && errors.Is(err, kv.ErrCompacted) {
			continue
		}
		return current.revision, err
	}
}

// rangeAt passes the pairs of a range of several keys to rows, unless that is nil.
func (s *Store) rangeAt(
	op *kv.RangeOp, rev kv.Revision, counted bool, account kv.Account, rows Rows,
) (Page, error) {
	if isEmptyRange(op.Key, op.End) {
		return Page{}, nil
	}
	if isSingle(op.End) {
		one, err := rangeOfOne(op, account, func(account kv.Account, bare bool) (*kv.KeyValue, bool, error) {
			if bare {
				return s.getBare(op.Key, rev)
			}
			return s.getAt(op.Key, rev, account)
		})
		return Page{Result: one}, err
	}
	want := newCollector(op, counted, account)
	want.give(rows)
	if current := s.state.Load(); isWhole(op) && current.revision == rev {
		want.total = current.numbers.keys
		want.totalKnown = true
	}
	if op.CountOnly {
		if !want.totalKnown {
			var err error
			if want.total, err = s.countAt(op.Key, op.End, rev, account); err != nil {
				return Page{}, err
			}
		}
		return Page{Result: kv.RangeResult{Count: want.total}}, nil
	}
	if want.counts() && !want.totalKnown {
		want.total, want.totalKnown = s.pages.find(op, rev)
	}
	want.behind = func(key []byte) (int64, bool, error) { return s.countBehind(key, op.End, rev, account) }
	lower, upper := versionBounds(op.Key, op.End)
	it, err := s.newIter(lower, upper, rev)
	if err != nil {
		return Page{}, err
	}
	page, err := want.page(&engineCursor{it: it, rev: allOf(rev), walk: walk{account: account}})
	if err == nil && page.Result.More && want.counts() {
		s.pages.keep(op, rev, page.Last, page.Result.Count-page.Given)
	}
	return page, err
}

// isWhole reports whether op covers every key: user keys are not empty, so 0x00 is the least.
func isWhole(op *kv.RangeOp) bool {
	return isOpenEnded(op.End) && (len(op.Key) == 0 || len(op.Key) == 1 && op.Key[0] == 0)
}

// isFiltered reports whether a range filters by revisions.
func isFiltered(op *kv.RangeOp) bool {
	return op.MinMod != 0 || op.MaxMod != 0 || op.MinCreate != 0 || op.MaxCreate != 0
}

// rangeOfOne answers a range of one key. get finds it, without its value if it is bare, and may have taken its bytes from
// account, as taken says. The pair may be shared: it is copied before it is stripped.
func rangeOfOne(
	op *kv.RangeOp, account kv.Account, get func(account kv.Account, bare bool) (found *kv.KeyValue, taken bool, err error),
) (kv.RangeResult, error) {
	bare := op.CountOnly || op.KeysOnly
	if account != nil && isFiltered(op) && !bare {
		found, _, err := get(nil, true)
		if err != nil || found == nil {
			return kv.RangeResult{}, err
		}
		if !passes(op, found.ModRevision, found.CreateRevision) {
			return kv.RangeResult{Count: 1}, nil // there is no value to take room for
		}
	}
	found, taken, err := get(account, bare)
	if err != nil || found == nil {
		return kv.RangeResult{}, err
	}
	if op.CountOnly || !passes(op, found.ModRevision, found.CreateRevision) {
		return kv.RangeResult{Count: 1}, nil
	}
	one := []kv.KeyValue{*found}
	strip(op, one)
	if account != nil && !taken {
		if err := account.Take(PairBytes(&one[0])); err != nil {
			return kv.RangeResult{}, err
		}
	}
	return kv.RangeResult{KVs: one, Count: 1}, nil
}

// pairOverhead is the memory of a pair beside its key and value: a KeyValue, in a list that has room to grow.
const pairOverhead = 128

// PairBytes is the memory of a pair in an answer, as accounts count it.
func PairBytes(pair *kv.KeyValue) int { return len(pair.Key) + len(pair.Value) + pairOverhead }

// collector gathers the answer to one RangeOp from a cursor.
type collector struct {
	op         *kv.RangeOp
	counted    bool
	keep       int64 // pairs to keep in key order, 0 = all
	withValue  bool
	total      int64
	totalKnown bool
	// behind counts the keys of the range from key on, or says that the walk should count them; nil: the walk should.
	behind  func(key []byte) (count int64, walk bool, err error)
	kvs     []kv.KeyValue
	arena   arena
	account kv.Account // nil: collected bytes are not counted
	owed    int        // bytes collected since the last Take
	spare   int        // bytes taken for pairs that were dropped since
	grown   int        // bytes collected since the last drop
	withSum bool       // collect hashes and sizes of values, too
	sums    []bareValue
	withAt  bool // collect positions of versions, too
	at      []position
	rows    Rows   // nil: the result keeps the pairs
	given   *given // nil: pairs are kept here until all are collected
}

// takeAtOnce is the number of bytes collected between two calls of Take.
const takeAtOnce = 32 << 10

func newCollector(op *kv.RangeOp, counted bool, account kv.Account) *collector {
	c := &collector{
		op: op, counted: counted, withValue: !op.KeysOnly || op.Target == kv.SortByValue, account: account,
	}
	inKeyOrder := op.Order == kv.SortNone || byKey(op)
	// With a target but no order, etcd cuts to limit+1 in key order first and sorts the remaining pairs.
	if op.Limit > 0 && inKeyOrder && !isFiltered(op) {
		c.keep = op.Limit
		if op.Limit < int64(kv.MaxRevision) {
			c.keep = op.Limit + 1
		}
	}
	return c
}

// counts reports whether the keys behind the kept ones, which are the first, are counted.
func (c *collector) counts() bool { return c.counted && c.keep > 0 }

// give makes the collector pass its pairs to rows: at once if they come in the requested order.
func (c *collector) give(rows Rows) {
	if c.rows = rows; rows != nil && byKey(c.op) {
		c.given = &given{rows: rows}
		c.keep = min(c.keep, c.op.Limit)
	}
}

// run walks over the cursor and closes it.
func (c *collector) run(from cursor) (kv.RangeResult, error) {
	page, err := c.page(from)
	return page.Result, err
}

// kept is the number of pairs that were kept, or passed on.
func (c *collector) kept() int64 {
	if c.given != nil {
		return c.given.count
	}
	return int64(len(c.kvs))
}

// page walks over the cursor and closes it.
func (c *collector) page(from cursor) (Page, error) {
	err := c.walk(from)
	if closeErr := from.close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return Page{}, err
	}
	if g := c.given; g != nil {
		page := Page{Result: kv.RangeResult{Count: c.total, More: g.more}, Given: g.count}
		if g.more {
			page.Last = g.last
		}
		return page, nil
	}
	page := Page{Result: c.result()}
	if page.Given = int64(len(page.Result.KVs)); page.Result.More {
		page.Last = page.Result.KVs[page.Given-1].Key
	}
	if c.rows == nil {
		return page, nil
	}
	for i := range page.Result.KVs {
		if err := c.rows.Append(&page.Result.KVs[i]); err != nil {
			return Page{}, err
		}
	}
	page.Result.KVs = nil
	return page, nil
}

func (c *collector) walk(from cursor) error {
	var seen int64
	for from.next() {
		seen++
		if c.keep > 0 && c.kept() >= c.keep {
			c.given.leave()
			if !c.counted || c.totalKnown {
				break
			}
			if err := c.ask(from.key(), seen-1); err != nil {
				return err
			}
			if c.totalKnown {
				break
			}
			continue
		}
		if !passesMod(c.op, from.mod()) {
			continue
		}
		rec, mod, err := from.version()
		if err != nil {
			return err
		}
		if !passes(c.op, mod, rec.create) {
			continue
		}
		if err := c.add(from.key(), &rec, mod); err != nil {
			return err
		}
	}
	if !c.totalKnown {
		c.total = seen
	}
	return c.settle()
}

// ask counts once the keys from key on, behind those before it.
func (c *collector) ask(key []byte, before int64) error {
	if c.behind == nil {
		return nil
	}
	count, walk, err := c.behind(key)
	c.behind = nil
	if err == nil && !walk {
		c.total, c.totalKnown = before+count, true
	}
	return err
}

// settle takes from the account the bytes collected since the last Take.
func (c *collector) settle() error {
	if c.account == nil || c.owed == 0 {
		return nil
	}
	owed := c.owed
	c.owed = 0
	return c.account.Take(owed)
}

func (c *collector) add(key []byte, rec *record, mod kv.Revision) error {
	if c.given != nil {
		return c.given.add(c.op, key, rec, mod)
	}
	one := kv.KeyValue{Key: key, CreateRevision: rec.create, ModRevision: mod, Version: rec.version, Lease: rec.lease}
	if c.withValue {
		one.Value = rec.value
	}
	c.drop()
	size := PairBytes(&one)
	c.grown += size
	again := min(c.spare, size)
	c.spare -= again
	if c.owed += size - again; c.owed >= takeAtOnce { // before the copy
		if err := c.settle(); err != nil {
			return err
		}
	}
	one.Key, one.Value = c.arena.copy(one.Key), c.arena.copy(one.Value)
	c.kvs = append(c.kvs, one)
	if c.withSum {
		c.sums = append(c.sums, bareValue{xxhash.Sum64(rec.value), uint32(len(rec.value))})
	}
	if c.withAt {
		c.at = append(c.at, rec.at)
	}
	return nil
}

// dropAtLeast is the number of bytes collected before any pairs are dropped.
const dropAtLeast = 256 << 10

// drop drops the pairs beyond the limit of a range that is sorted or filtered: the first of very many are found in the memory
// of a few. The remaining pairs are copied, as any pair in a piece of the arena keeps the whole piece. Pairs that are equal
// stay in the order of keys, as later ones have later keys.
func (c *collector) drop() {
	limit := c.op.Limit
	if limit <= 0 || c.keep > 0 || c.withSum || c.withAt || c.grown < dropAtLeast || int64(len(c.kvs))/2 <= limit {
		return
	}
	keep := limit + 1 // one more shows that there are more
	sortKVs(c.kvs, c.op.Target, c.op.Order)
	for i := range c.kvs[keep:] {
		c.spare += PairBytes(&c.kvs[keep:][i])
	}
	clear(c.kvs[keep:])
	c.kvs, c.arena, c.grown = c.kvs[:keep], arena{}, 0
	for i := range c.kvs {
		one := &c.kvs[i]
		one.Key, one.Value = c.arena.copy(one.Key), c.arena.copy(one.Value)
	}
}

func (c *collector) result() kv.RangeResult {
	sortKVs(c.kvs, c.op.Target, c.op.Order)
	result := kv.RangeResult{KVs: c.kvs, Count: c.total}
	if c.op.Limit > 0 && int64(len(c.kvs)) > c.op.Limit {
		result.KVs, result.More = c.kvs[:c.op.Limit], true
	}
	strip(c.op, result.KVs)
	return result
}

// passes applies the revision filters.
func passes(op *kv.RangeOp, mod, create kv.Revision) bool {
	return passesMod(op, mod) && (op.MaxCreate == 0 || create <= op.MaxCreate) && (op.MinCreate == 0 || create >= op.MinCreate)
}

func passesMod(op *kv.RangeOp, mod kv.Revision) bool {
	return (op.MaxMod == 0 || mod <= op.MaxMod) && (op.MinMod == 0 || mod >= op.MinMod)
}

// strip removes the fields that keys_only does not ask for. etcd 3.7 serves keys_only from its index, which has no leases,
// unless it needs values for the order; clients see that, so we do the same.
func strip(op *kv.RangeOp, kvs []kv.KeyValue) {
	if !op.KeysOnly {
		return
	}
	for i := range kvs {
		kvs[i].Value = nil
		if op.Target != kv.SortByValue {
			kvs[i].Lease = 0
		}
	}
}

// byKey reports whether op asks for the order of keys.
func byKey(op *kv.RangeOp) bool {
	return op.Target == kv.SortByKey && (op.Order == kv.SortNone || op.Order == kv.SortAscend)
}

// sortKVs sorts by the target; keys in ascending order break ties.
func sortKVs(kvs []kv.KeyValue, target kv.SortTarget, order kv.SortOrder) {
	if order == kv.SortNone && target != kv.SortByKey {
		order = kv.SortAscend
	}
	if order == kv.SortNone || order == kv.SortAscend && target == kv.SortByKey {
		return
	}
	compare := func(a, b kv.KeyValue) int {
		switch target {
		case kv.SortByVersion:
			return cmp.Compare(a.Version, b.Version)
		case kv.SortByCreate:
			return cmp.Compare(a.CreateRevision, b.CreateRevision)
		case kv.SortByMod:
			return cmp.Compare(a.ModRevision, b.ModRevision)
		case kv.SortByValue:
			return bytes.Compare(a.Value, b.Value)
		}
		return bytes.Compare(a.Key, b.Key)
	}
	if order == kv.SortDescend {
		slices.SortStableFunc(kvs, func(a, b kv.KeyValue) int { return compare(b, a) })
		return
	}
	slices.SortStableFunc(kvs, compare)
}

// arena hands out copies from a few large pieces of memory.
type arena struct{ account []byte }

const (
	arenaLeast = 1 << 10
	arenaMost  = 64 << 10
)

func (a *arena) copy(src []byte) []byte {
	if len(src) == 0 {
		return nil
	}
	if len(src) > cap(a.account)-len(a.account) {
		a.account = make([]byte, 0, max(len(src), min(max(2*cap(a.account), arenaLeast), arenaMost)))
	}
	start := len(a.account)
	a.account = append(a.account, src...)
	return a.account[start:len(a.account):len(a.account)]
}
