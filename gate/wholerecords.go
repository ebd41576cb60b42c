package gate

import "context"

// WholeRecords hands one page of records to see, whole, newest first, and answers
// the cursor of the next page; empty: there is none. An error of see's is
// answered as it is. What is erased between the two looks that this takes is left
// out.
func WholeRecords(ctx context.Context, from Records, f RecordFilter, see func(Record) error) (next string, err error) {
	items, next, err := from.Records(ctx, f)
	if err != nil {
		return "", err
	}
	for _, item := range items {
		r, err := from.Record(ctx, item.EvaluationID)
		if err != nil && CodeOf(err) == CodeNotFound {
			continue
		}
		if err != nil {
			return "", err
		}
		if err := see(r); err != nil {
			return "", err
		}
	}
	return next, nil
}
