package directory

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// places are the first of many that come after one, in order.
type places struct {
	within      string // what all of them begin with
	from, after string // two that they come after
	most        int
	all         []string
	cut         bool // there are more; all that is held comes before them
}

// skips reports whether an entry of the directory is none of the places, as a file or as a directory: most are not where there
// are many, and this is all that is done for them.
func (p *places) skips(entry string) bool {
	for _, begin := range [...]string{p.from, p.after} {
		if rest, below := strings.CutPrefix(begin, p.within); below && entry < rest && !strings.HasPrefix(rest, entry) {
			return true
		}
	}
	return p.cut && entry > p.all[p.most-1][len(p.within):]
}

func (p *places) add(place string) {
	if place <= p.after || p.cut && place > p.all[p.most-1] { // so many come before it
		return
	}
	if p.all = append(p.all, place); len(p.all) >= p.most+p.most/2 {
		p.shorten()
	}
}

// shorten leaves out all but the first.
func (p *places) shorten() {
	slices.Sort(p.all)
	if p.all = slices.Compact(p.all); len(p.all) > p.most {
		clear(p.all[p.most:])
		p.all, p.cut = p.all[:p.most], true
	}
}

// take returns the first, which are the caller's alone, and whether there are more.
func (p *places) take() (all []string, more bool) {
	p.shorten()
	all, p.all = p.all, nil
	return all, p.cut
}

// rest is what is known of the places of a directory that are not visited yet.
type rest struct {
	dir    string
	places []string
	last   string // that was visited
	more   bool   // there are others after all these
	read   time.Time

	prefix, after string // of the list that goes on there
}

// placeBytes is what a place takes in memory, as a rule.
const placeBytes = 512

// restFor is how long places are believed: a list may omit what came meanwhile.
const restFor = time.Minute

// rests has the rest of the last list.
type rests struct {
	mu   sync.Mutex
	last *rest // nil: there is none
}

func (r *rests) keep(last *rest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = last
}

// take returns the places at which a list goes on; nil: they are to be read. A list that begins forgets them.
func (r *rests) take(prefix, after string, now time.Time) *rest {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last
	if last == nil || last.prefix != prefix || after != "" && last.after != after {
		return nil
	}
	r.last = nil
	if age := now.Sub(last.read); after == "" || age < 0 || age > restFor {
		return nil
	}
	return last
}

// held returns the bytes of what is kept.
func (r *rests) held() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		return 0
	}
	return int64(len(r.last.places)) * placeBytes
}
