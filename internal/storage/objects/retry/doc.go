// Package retry does operations on objects again that may succeed later.
//
// Policy decides, and knows no clock: which attempt follows, and after which pause. Store performs it. It repeats passing
// errors alone (objects.Passing): a place that refuses is not asked again. A body that breaks off goes on where it ended.
package retry
