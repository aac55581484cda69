// Package alarms is the page of the console about what an operator looks after: alarms that stand, certificates that end, the
// feature level, and backups.
//
// Alarms and certificates come from what members observe (package observed), so that they are shown without a leader, too.
//
// All functions may be called concurrently.
package alarms
