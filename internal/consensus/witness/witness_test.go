package witness_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/base/keyrange"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/witness"
)

// randomKey draws short keys of few letters, so that they are prefixes of each other, and some end in a zero byte.
func randomKey(rng *rand.Rand) []byte {
	key := make([]byte, rng.IntN(4))
	for i := range key {
		key[i] = []byte{0, 'a', 'b', 0xff}[rng.IntN(4)]
	}
	return key
}

// randomRange draws single keys mostly; else intervals, empty ones too, and those that have no end.
func randomRange(rng *rand.Rand) keyrange.Range {
	key := randomKey(rng)
	switch rng.IntN(6) {
	case 0:
		return keyrange.Range{Start: key, End: randomKey(rng)}
	case 1:
		return keyrange.From(key, []byte{0})
	}
	return keyrange.From(key, nil)
}

func randomFootprint(rng *rand.Rand) consensus.Footprint {
	f := consensus.Footprint{Barrier: rng.IntN(25) == 0}
	for range rng.IntN(3) {
		f.Keys = append(f.Keys, randomRange(rng))
	}
	for range rng.IntN(2) {
		f.Leases = append(f.Leases, int64(rng.IntN(6)))
	}
	return f
}

func meets(list []consensus.Footprint, f *consensus.Footprint) bool {
	return slices.ContainsFunc(list, func(other consensus.Footprint) bool { return f.Conflicts(&other) })
}

// Ensure that claims answer as a list of all footprints that is gone through.
func TestClaims_Meets_list(t *testing.T) {
	met := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var claims witness.Claims
		var list []consensus.Footprint
		for step := range 60 {
			if len(list) > 0 && rng.IntN(5) < 2 {
				at := rng.IntN(len(list))
				claims.Remove(&list[at])
				list = slices.Delete(list, at, at+1)
			} else if f := randomFootprint(rng); len(list) < 12 {
				claims.Add(&f)
				list = append(list, f)
			}
			f := randomFootprint(rng)
			got, want := claims.Meets(&f), meets(list, &f)
			if got != want || claims.Len() != len(list) {
				t.Fatalf("seed %d, step %d: %+v meets %t, want %t, among %d, want %+v", seed, step, f, got, want, claims.Len(), list)
			}
			if got {
				met++
			}
		}
		for i := range list {
			claims.Remove(&list[i])
		}
		everything := consensus.Footprint{Keys: []keyrange.Range{keyrange.From(nil, []byte{0})}, Leases: []int64{0, 1, 2, 3, 4, 5}, Barrier: true}
		if claims.Meets(&everything) || claims.Len() != 0 {
			t.Fatalf("seed %d: something is left of what was removed", seed)
		}
	}
	if met < 2000 || met > 16000 {
		t.Errorf("%d of 18000 met something: the test asks too little", met)
	}
}

// Ensure that claims keep no memory of the caller that added them.
func TestClaims_Add_copies(t *testing.T) {
	var claims witness.Claims
	key, start, end := []byte("k"), []byte("m"), []byte("p")
	f := consensus.Footprint{Keys: []keyrange.Range{keyrange.From(key, nil), {Start: start, End: end}}}
	claims.Add(&f)
	for _, b := range [][]byte{key, start, end, f.Keys[0].Start, f.Keys[0].End} {
		clear(b)
	}
	for name, want := range map[string]bool{"k": true, "n": true, "p": false, "a": false} {
		asked := consensus.Footprint{Keys: []keyrange.Range{keyrange.From([]byte(name), nil)}}
		if got := claims.Meets(&asked); got != want {
			t.Errorf("%q is met: %t, want %t", name, got, want)
		}
	}
}

// naivePool is what a Pool must be like.
type naivePool struct {
	records    []consensus.Record
	footprints []consensus.Footprint
	since      []uint64
	asked      map[consensus.Attempt]uint64
}

func (p *naivePool) add(r consensus.Record, f consensus.Footprint, now uint64) bool {
	if slices.ContainsFunc(p.records, func(other consensus.Record) bool { return other.Attempt == r.Attempt }) {
		return false
	}
	p.records, p.footprints, p.since = append(p.records, r), append(p.footprints, f), append(p.since, now)
	return true
}

func (p *naivePool) forget(drop func(r *consensus.Record) bool) []consensus.Attempt {
	var gone []consensus.Attempt
	for i := 0; i < len(p.records); i++ {
		if drop(&p.records[i]) {
			gone = append(gone, p.records[i].Attempt)
			delete(p.asked, p.records[i].Attempt)
			p.records = slices.Delete(p.records, i, i+1)
			p.footprints = slices.Delete(p.footprints, i, i+1)
			p.since = slices.Delete(p.since, i, i+1)
			i--
		}
	}
	return gone
}

func (p *naivePool) older(before, now uint64, most int) []consensus.ProposalID {
	var ids []consensus.ProposalID
	for i := range p.records {
		if max(p.since[i], p.asked[p.records[i].Attempt]) < before && len(ids) < most {
			if p.asked == nil {
				p.asked = map[consensus.Attempt]uint64{}
			}
			p.asked[p.records[i].Attempt] = now
			if id := p.records[i].Proposal; !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func sameRecords(a, b []consensus.Record) bool {
	return slices.EqualFunc(a, b, func(x, y consensus.Record) bool {
		return x.Attempt == y.Attempt && x.Term == y.Term && string(x.Payload) == string(y.Payload)
	})
}

// Ensure that a pool is what a plain list of records would be: of many attempts of few proposals, so that they meet.
func TestPool_list(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var pool witness.Pool
		var naive naivePool
		for step := range uint64(80) {
			id := consensus.ProposalID{Sequence: uint64(1 + rng.IntN(6))}
			switch rng.IntN(10) {
			case 0:
				drop := func(r *consensus.Record) bool { return r.Proposal == id }
				if got, want := pool.Forget(drop), naive.forget(drop); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d: forgot %v, want %v", seed, step, got, want)
				}
			case 1:
				revision := uint64(rng.IntN(12))
				drop := func(r *consensus.Record) bool { return r.Revision == revision }
				if got, want := pool.Forget(drop), naive.forget(drop); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d: forgot %v, want %v", seed, step, got, want)
				}
			case 2:
				before, most := step-uint64(rng.IntN(30)), rng.IntN(4)
				if step < 30 {
					before = 0
				}
				if got, want := pool.Older(before, step, most), naive.older(before, step, most); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d: older than %d: %v, want %v", seed, step, before, got, want)
				}
			default:
				r := consensus.Record{
					Attempt: consensus.Attempt{Proposal: id, Revision: uint64(rng.IntN(12))},
					Term:    consensus.Term(step), Payload: []byte(fmt.Sprint(step)),
				}
				f := randomFootprint(rng)
				if got, want := pool.Add(r, f, step), naive.add(r, f, step); got != want {
					t.Fatalf("seed %d, step %d: added %t, want %t", seed, step, got, want)
				}
			}
			comparePools(t, &pool, &naive, id, randomFootprint(rng))
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}

func comparePools(t *testing.T, pool *witness.Pool, naive *naivePool, id consensus.ProposalID, asked consensus.Footprint) {
	t.Helper()
	var top uint64
	bytes := 0
	var of []consensus.Record
	for _, r := range naive.records {
		top, bytes = max(top, r.Revision), bytes+len(r.Payload)
		if r.Proposal == id {
			of = append(of, r)
		}
	}
	if pool.Len() != len(naive.records) || pool.Top() != top || pool.Bytes() != bytes {
		t.Errorf("%d records, top %d, %d bytes; want %d, %d, %d", pool.Len(), pool.Top(), pool.Bytes(), len(naive.records), top, bytes)
	}
	if !sameRecords(pool.Records(), naive.records) || !sameRecords(pool.Find(id), of) || pool.Holds(id) != (len(of) > 0) {
		t.Errorf("records %v, of %v %v; want %v, %v", pool.Records(), id, pool.Find(id), naive.records, of)
	}
	if got, want := pool.Meets(&asked), meets(naive.footprints, &asked); got != want {
		t.Errorf("%+v meets %t, want %t", asked, got, want)
	}
}

// Ensure that what Records returned stays as it was when the pool changes.
func TestPool_Records_copy(t *testing.T) {
	var pool witness.Pool
	for i := range uint64(5) {
		pool.Add(consensus.Record{Attempt: consensus.Attempt{Proposal: consensus.ProposalID{Sequence: i + 1}, Revision: i + 1}}, consensus.Footprint{}, 0)
	}
	before := pool.Records()
	kept := slices.Clone(before)
	pool.Forget(func(r *consensus.Record) bool { return r.Revision%2 == 1 })
	if !sameRecords(before, kept) || pool.Len() != 2 {
		t.Errorf("records became %v, were %v; %d are left", before, kept, pool.Len())
	}
}
