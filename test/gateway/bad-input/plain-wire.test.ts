/** The rows on heads, bodies and answers once more, with sockets read through 'data' events instead of `push`. */
import { setupDefaults } from '../../kit/gateway.ts';
import './bodies.test.ts';
import './framing.test.ts';
import './responses.test.ts';

// Read when the stages of these files start, which is after all imports.
setupDefaults.wireMode = 'plain';
