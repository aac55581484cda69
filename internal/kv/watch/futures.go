package watch

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
