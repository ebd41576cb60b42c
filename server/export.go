package server

import (
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"stopgate/gate"
)

const (
	// exportPage is how many records are asked of the store at once.
	exportPage = 100
	// An answer that broke off somewhere on its way lacks its trailer, and so can
	// be told from a whole one.
	trailerState = "Stopgate-Export" // "complete", or "more"
	trailerNext  = "Stopgate-Next"   // the cursor to go on with
)

// exportEvaluations streams records, whole, one to a line: as many as limit says,
// or all.
func (s *Server) exportEvaluations(c echo.Context) error {
	filter, err := readFilter(c.QueryParams())
	if err != nil {
		return err
	}
	who := callerOf(c)
	filter.Agents = append([]string{}, who.Agents...) // of a caller without any: none, where nil would be all
	if c.Request().Method == http.MethodHead {
		c.Response().Header().Set("Content-Type", typeNDJSON)
		return c.NoContent(http.StatusOK)
	}
	out := s.paced(c)
	begin := func() {
		if !c.Response().Committed {
			c.Response().Header().Set("Content-Type", typeNDJSON)
			c.Response().Header().Set("Trailer", trailerState+", "+trailerNext)
			c.Response().WriteHeader(http.StatusOK)
		}
	}
	most, sent := filter.Limit, 0
	for more := true; more; more = filter.Cursor != "" && (most == 0 || sent < most) {
		filter.Limit = exportPage
		if most > 0 {
			filter.Limit = min(most-sent, exportPage)
		}
		filter.Cursor, err = gate.WholeRecords(c.Request().Context(), s.opt.Store, filter, func(r gate.Record) error {
			if seen, err := s.mayRead(c, r); err != nil || !seen { // the store has kept to that; this is so whatever store it is
				return err
			}
			line, err := json.Marshal(r) // is one line, whatever the payload is
			if err != nil {
				return err
			}
			begin()
			sent++
			_, err = out.Write(append(line, '\n'))
			return err
		})
		if err != nil {
			return err // and after the first line the connection is cut
		}
	}
	begin()
	state := "complete"
	if filter.Cursor != "" {
		state = "more"
	}
	c.Response().Header().Set(trailerState, state)
	c.Response().Header().Set(trailerNext, filter.Cursor)
	return nil
}

const typeNDJSON = "application/x-ndjson"
