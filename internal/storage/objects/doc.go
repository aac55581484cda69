// Package objects is the port to places that hold objects: a directory, a bucket of S3, memory.
//
// An object is a sequence of bytes under a name, and never changes. A place is slow and far away, may be somebody else's, and
// is believed in nothing: it may lose an answer after the work was done, cut a body, list what is gone and omit what is there,
// refuse for an hour, forget. Callers therefore give each content a name of its own, and check what they read by a sum that the
// name or another object has.
//
// PutOnce is the road for writers: after any answer that leaves doubt it reads the object back.
package objects
