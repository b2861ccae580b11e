/* SPDX-License-Identifier: Apache-2.0 */
/* nginx: how long requests take, in microseconds from their headers to their end: a histogram by status */
/*
 * Costs two probes a request. A request that had begun before counts only once its headers were read.
 */
_map unsigned long began[ngx_http_request_t *];
_agg us[long];

_probe ngx_http_process_request {
	began[$r] = _ns;
}

_probe ngx_http_free_request {
	unsigned long since = began[$r];

	if (since) {
		us[$r->err_status ? $r->err_status : $r->headers_out.status] <<< (_ns - since) / 1000;
		_delete(began[$r]);
	}
}

_probe _end {
	_print(us);
	_hist(us);
}
