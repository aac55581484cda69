package watch

// lane is a list of watchers, each of which is in one lane at most: the hub's of those in step, or their stream's of
// those that are behind.
type lane struct {
	first, last *watcher
	count       int
}

func (l *lane) push(w *watcher) {
	w.lane, w.before, w.after = l, l.last, nil
	if l.last == nil {
		l.first = w
	} else {
		l.last.after = w
	}
	l.last = w
	l.count++
}

func (l *lane) remove(w *watcher) {
	if w.before == nil {
		l.first = w.after
	} else {
		w.before.after = w.after
	}
	if w.after == nil {
		l.last = w.before
	} else {
		w.after.before = w.before
	}
	w.lane, w.before, w.after = nil, nil, nil
	l.count--
}

// futures is a heap of the watchers of a stream that start after what was published, the earliest first.
type futures []*watcher

func (f futures) Len() int           { return len(f) }
func (f futures) Less(i, j int) bool { return f[i].start < f[j].start }
func (f futures) Swap(i, j int) {
	f[i], f[j] = f[j], f[i]
	f[i].future, f[j].future = i, j
}

// Push implements heap.Interface.
func (f *futures) Push(x any) {
	w := x.(*watcher)
	w.future = len(*f)
	*f = append(*f, w)
}

// Pop implements heap.Interface.
func (f *futures) Pop() any {
	last := len(*f) - 1
	w := (*f)[last]
	(*f)[last] = nil
	*f = (*f)[:last]
	w.future = nowhere
	return w
}

// nowhere is the place of a watcher in a list that it is not in.
const nowhere = -1
