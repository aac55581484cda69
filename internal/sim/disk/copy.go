package disk

// Copy returns another disk with the same contents, durable or not, as an operator may copy a disk while its machine runs or is
// down.
func (f *FS) Copy() *FS {
	c := copier{}
	next := &FS{root: c.inode(f.root), fuse: -1, Lying: f.Lying}
	for _, r := range f.meta {
		edits := make([]edit, len(r.edits))
		for i, e := range r.edits {
			edits[i] = edit{c.inode(e.dir), e.name, c.inode(e.node)}
		}
		next.meta = append(next.meta, rename{edits})
	}
	return next
}

// copier copies each inode once: a file may have several names.
type copier map[*inode]*inode

func (c copier) inode(n *inode) *inode {
	if n == nil {
		return nil
	}
	if done := c[n]; done != nil {
		return done
	}
	next := &inode{data: append([]byte(nil), n.data...), durable: append([]byte(nil), n.durable...)}
	c[n] = next
	for _, w := range n.pending {
		next.pending = append(next.pending, write{w.at, append([]byte(nil), w.data...)})
	}
	next.names, next.kept = c.names(n.names), c.names(n.kept)
	return next
}

func (c copier) names(names map[string]*inode) map[string]*inode {
	if names == nil {
		return nil
	}
	next := make(map[string]*inode, len(names))
	for _, name := range sortedNames(names) {
		next[name] = c.inode(names[name])
	}
	return next
}
