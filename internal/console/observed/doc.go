// Package observed is what pages of the console know of all members at once: the member that shows the console asks the others.
//
// Ask makes one call. A member whose build cannot ask the others tells what it observes itself, and the answer says so. The
// main type is Answer.
//
// Invariants:
//  1. It is known without a leader and without a majority: no call of this package waits for either.
//  2. Numbers, lists and texts that members sent are within the bounds of package doctor.
//
// An Answer belongs to its caller, and is not changed after Ask.
package observed
